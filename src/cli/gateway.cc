// SPDX-License-Identifier: Apache-2.0
//
// tessera gateway: named endpoints of models on this machine, behind the llm-engine API and
// OpenAI's. SIGTERM and SIGINT drain: running calls are finished, then the workers end. With
// --keep-workers they stay for the next gateway of the same state folder.
#include "gateway/gateway.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>

#include "cli/environment.h"
#include "cli/hub_options.h"
#include "cli/listen_options.h"
#include "cli/server_signals.h"
#include "cli/terminal.h"
#include "cli/validators.h"
#include "cli/verbs.h"

#include "base/file.h"

namespace tessera::cli {
namespace {

/// The --batch-root of a gateway that only this machine reaches.
constexpr std::string_view kTemporary = "tmp", kNowhere = "off";

struct Options {
  ListenOptions listen{.port = 5000};
  std::string state_dir;
  std::string database;
  std::string advertise;
  std::string models;
  std::string model_root;
  std::string cache_dir;
  bool is_offline = false;
  bool allow_unauthenticated = false;
  bool keep_workers = false;
  int64_t idle_seconds = 60;
  int64_t scale_down_seconds = 30;
  int64_t hold_seconds = 300;
  int64_t start_seconds = 1800;
  int drain_seconds = 60;
  int http_threads = 8;
  uint64_t file_bytes = gateway::FileLimits{}.file_bytes_max;
  std::string batch_root = std::string(kTemporary);
  uint64_t files_quota = gateway::FileLimits{}.owner_bytes_max;
};

/// $XDG_STATE_HOME/tessera/gateway, else ~/.local/state/tessera/gateway.
Result<std::filesystem::path> StateDir(const Options& options) {
  if (!options.state_dir.empty()) return std::filesystem::absolute(options.state_dir);
  if (const auto state = Environment("XDG_STATE_HOME"))
    return std::filesystem::path(*state) / "tessera" / "gateway";
  if (const auto home = Environment("HOME"))
    return std::filesystem::path(*home) / ".local/state/tessera/gateway";
  return Fail(
      InvalidArgument("neither XDG_STATE_HOME nor HOME is set: name a folder with "
                      "--state-dir"));
}

/// Whoever may call from this machine has a folder of temporary files anyway; from elsewhere nobody
/// names paths unless it is said which.
std::filesystem::path BatchRootOf(const Options& options) {
  if (options.batch_root == kNowhere) return {};
  if (options.batch_root != kTemporary) return options.batch_root;
  if (options.allow_unauthenticated) return {};
  std::error_code ignored;
  return std::filesystem::temp_directory_path(ignored);
}

Result<gateway::GatewayOptions> MakeOptions(const Options& options) {
  using std::chrono::seconds;
  gateway::GatewayOptions made;
  TESSERA_ASSIGN_OR_RETURN(made.state_dir, StateDir(options));
  std::error_code error;
  made.program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return Fail(ErrnoStatus(error.value(), "reading", "/proc/self/exe"));
  made.database = options.database;
  made.advertise = options.advertise;
  if (!options.advertise.empty() && options.database.empty())
    return Fail(InvalidArgument("--advertise is for gateways that share a --database"));
  if (!options.database.empty() && !options.listen.tls_certificate.empty())
    return Fail(InvalidArgument(
        "gateways that share a --database pass calls on to each other without TLS: end TLS in a "
        "proxy before them, without --tls-cert here"));
  made.models = {.aliases_file = options.models, .model_root = options.model_root};
  TESSERA_RETURN_IF_ERROR(SetListenOptions(options.listen, &made.http));
  made.http.worker_threads = options.http_threads;
  made.http.loopback_only = !options.allow_unauthenticated;
  made.control.idle = seconds(options.idle_seconds);
  made.control.window = seconds(options.scale_down_seconds);
  made.control.patience.start = seconds(options.start_seconds);
  // A worker drains by itself for as long; it is killed only when it does not.
  made.control.patience.drain = seconds(options.drain_seconds + 5);
  if (!options.cache_dir.empty())
    made.control.serve_arguments.push_back("--cache-dir=" +
                                           std::filesystem::absolute(options.cache_dir).string());
  if (options.is_offline) made.control.serve_arguments.emplace_back("--offline");
  made.batch_root = BatchRootOf(options);
  // As the workers find it, which have our environment.
  if (const auto hub = HubSettings({}, options.cache_dir); hub.has_value())
    made.hub_cache = hub->cache;
  made.files.file_bytes_max = options.file_bytes;
  made.files.owner_bytes_max = options.files_quota;
  made.worker_drain_seconds = options.drain_seconds;
  made.hold = seconds(options.hold_seconds);
  return made;
}

Status RunGateway(const Options& options) {
  TESSERA_ASSIGN_OR_RETURN(gateway::GatewayOptions made, MakeOptions(options));
  const std::string state_dir = made.state_dir.string();
  ServerSignals signals;
  TESSERA_RETURN_IF_ERROR(signals.Start());
  struct {
    std::mutex mutex;
    Status status;
  } lost;
  made.on_lead_lost = [&lost](const Status& status) {
    {
      const std::lock_guard lock(lost.mutex);
      lost.status = status;
    }
    (void)::kill(::getpid(), SIGTERM);
  };
  auto started = gateway::Gateway::Start(std::move(made), Clock::Real());
  if (!started.has_value()) {
    if (started.error().code() != Code::kFailedPrecondition || options.allow_unauthenticated)
      return started.error();
    return InvalidArgument(started.error().ToString() +
                           ", and any user name would do: put a proxy with logins before it and "
                           "say --allow-unauthenticated");
  }
  const std::unique_ptr<gateway::Gateway> gateway = *std::move(started);
  signals.BeginServing();
  Note("gateway at {}://{}, state in {}\n", options.listen.scheme(), gateway->address(), state_dir);
  const int signal = signals.Wait();
  {
    const std::lock_guard lock(lost.mutex);
    // Its workers go on: they are for whoever leads now.
    if (!lost.status.ok())
      return Unavailable(lost.status.message() +
                         "; another gateway may lead by now: start this one again");
  }
  if (options.keep_workers) {
    Note("{}: ending; workers go on\n", signal == SIGTERM ? "SIGTERM" : "SIGINT");
    return {};
  }
  Note("{}: finishing calls and workers, at most {} s\n", signal == SIGTERM ? "SIGTERM" : "SIGINT",
       options.drain_seconds);
  return gateway->Drain(std::chrono::seconds(options.drain_seconds));
}

}  // namespace

void AddGateway(CLI::App* app, Context* context) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      app->add_subcommand("gateway", "Named endpoints of models: create, scale, update, use");
  AddListenOptions(verb, &options->listen);
  verb->add_option("--state-dir", options->state_dir,
                   "Folder of endpoints, events and logs; one gateway at a time has it (default: "
                   "$XDG_STATE_HOME/tessera/gateway, else ~/.local/state/tessera/gateway)")
      ->check(PlainText());
  verb->add_option(
          "--database", options->database,
          "postgres://user@host/name: state shared by several gateways, of which one leads "
          "and the others pass calls on to it (default: SQLite in the state folder)")
      ->envname("TESSERA_DATABASE")
      ->check(PlainText());
  verb->add_option("--advertise", options->advertise,
                   "ADDRESS:PORT at which the other gateways reach this one (default: where it "
                   "listens)")
      ->check(PlainText());
  verb->add_option("--models", options->models,
                   "TOML file of aliases: [models] NAME = \"repository, path or bundle\"")
      ->check(PlainText());
  verb->add_option("--model-root", options->model_root,
                   "Folder whose files endpoints may name by their path in it (default: none)")
      ->check(PlainText());
  verb->add_option("--cache-dir", options->cache_dir, "Cache of workers' bundles and downloads")
      ->check(PlainText());
  verb->add_flag("--offline", options->is_offline, "Workers ask no hub");
  verb->add_flag("--allow-unauthenticated", options->allow_unauthenticated,
                 "Listen beyond loopback although any user name is accepted");
  verb->add_flag("--keep-workers", options->keep_workers,
                 "Leave workers running at the end, for the next gateway of this state folder");
  verb->add_option("--idle-timeout", options->idle_seconds,
                   "Seconds without a call before the last worker of min_workers 0 ends")
      ->check(WholeNumber(1, 30 * 86400))
      ->capture_default_str();
  verb->add_option("--scale-down-after", options->scale_down_seconds,
                   "Seconds of less load before a worker too many ends")
      ->check(WholeNumber(1, 86400))
      ->capture_default_str();
  verb->add_option("--hold-timeout", options->hold_seconds,
                   "Seconds that a call waits for a worker")
      ->check(WholeNumber(1, 86400))
      ->capture_default_str();
  verb->add_option("--start-timeout", options->start_seconds,
                   "Seconds that a worker may take until it serves, download included")
      ->check(WholeNumber(1, 30 * 86400))
      ->capture_default_str();
  verb->add_option("--drain-seconds", options->drain_seconds,
                   "Patience with running calls when a worker or the gateway ends")
      ->check(WholeNumber(0, 86400))
      ->capture_default_str();
  verb->add_option("--file-size-max", options->file_bytes, "Largest file that may be uploaded")
      ->transform(ByteSize())
      ->default_str("512MiB");
  verb->add_option("--files-quota", options->files_quota, "Bytes of all files of one user")
      ->transform(ByteSize())
      ->default_str("16GiB");
  verb->add_option("--batch-root", options->batch_root,
                   "Folder in which callers may name inputs and outputs of batches; tmp: that of "
                   "temporary files, unless others than this machine may call; off: none")
      ->check(PlainText())
      ->capture_default_str();
  verb->add_option("--http-threads", options->http_threads, "Threads that read and check requests")
      ->check(WholeNumber(1, 256))
      ->capture_default_str();
  verb->callback([options, context] { RunVerb(context, [&] { return RunGateway(*options); }); });
}

}  // namespace tessera::cli
