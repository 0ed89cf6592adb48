// SPDX-License-Identifier: Apache-2.0
#include "cli/hub_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <optional>

#include "cli/download_bars.h"
#include "cli/environment.h"
#include "cli/http_address.h"
#include "cli/progress.h"
#include "cli/terminal.h"

#include "base/file.h"
#include "base/json.h"
#include "hub/http.h"
#include "hub/limits.h"

namespace tessera::cli {
namespace {

/// As huggingface_hub reads it.
bool IsTrue(const std::optional<std::string>& value) {
  if (!value) return false;
  std::string upper = *value;
  for (char& c : upper)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  return upper == "1" || upper == "ON" || upper == "YES" || upper == "TRUE";
}

std::optional<std::string> FirstOf(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (auto value = Environment(name)) return value;
  return std::nullopt;
}

Result<std::filesystem::path> HuggingFaceHome() {
  if (const auto home = Environment("HF_HOME")) return std::filesystem::path(*home);
  if (const auto xdg = Environment("XDG_CACHE_HOME"))
    return std::filesystem::path(*xdg) / "huggingface";
  TESSERA_ASSIGN_OR_RETURN(const std::filesystem::path home, HomeFolder());
  return home / ".cache" / "huggingface";
}

/// $HF_TOKEN, else the file that `hf auth login` writes; empty: anonymous.
Result<std::string> Token(const std::filesystem::path& home) {
  std::string token;
  if (const auto value = FirstOf({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})) {
    token = *value;
  } else if (!IsTrue(Environment("HF_HUB_DISABLE_IMPLICIT_TOKEN"))) {
    const auto path = Environment("HF_TOKEN_PATH");
    const std::filesystem::path file = path ? std::filesystem::path(*path) : home / "token";
    auto text = ReadFile(file, hub::kMaxTokenBytes);
    if (text.has_value())
      token = *std::move(text);
    else if (text.error().code() != Code::kNotFound)
      return Fail(text.error());
  }
  const auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  while (!token.empty() && is_space(token.back())) token.pop_back();
  while (!token.empty() && is_space(token.front())) token.erase(0, 1);
  for (const char c : token)
    if (c <= 0x20 || c >= 0x7f)
      return Fail(
          InvalidArgument("the token in HF_TOKEN (or its file) has characters that no "
                          "token has: copy it again"));
  return token;
}

Status ReadTimeout(hub::Settings* settings) {
  const auto text = Environment("HF_HUB_DOWNLOAD_TIMEOUT");
  if (!text) return {};
  int seconds = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), seconds);
  if (error != std::errc() || end != text->data() + text->size() || seconds < 1 || seconds > 86400)
    return InvalidArgument(
        fmt::format("HF_HUB_DOWNLOAD_TIMEOUT=\"{}\": expected seconds from 1 to 86400", *text));
  settings->stall_timeout = std::chrono::seconds(seconds);
  return {};
}

hub::AwsSettings Aws() {
  hub::AwsSettings aws;
  aws.access_key = Environment("AWS_ACCESS_KEY_ID").value_or("");
  aws.secret_key = Environment("AWS_SECRET_ACCESS_KEY").value_or("");
  aws.session_token = Environment("AWS_SESSION_TOKEN").value_or("");
  aws.region = FirstOf({"AWS_REGION", "AWS_DEFAULT_REGION"}).value_or(aws.region);
  aws.endpoint = FirstOf({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}).value_or("");
  while (aws.endpoint.ends_with('/')) aws.endpoint.pop_back();
  return aws;
}

}  // namespace

void AddHubOptions(CLI::App* verb, HubOptions* options) {
  verb->add_option("--hf-cache-dir", options->hf_cache_dir,
                   "Where downloads are kept, in the layout of huggingface_hub (else "
                   "$HF_HUB_CACHE, $HF_HOME/hub, ~/.cache/huggingface/hub)");
  verb->add_option("--revision", options->revision,
                   "Branch, tag or commit of a MODEL that is named (else main)");
  verb->add_flag("--offline", options->offline,
                 "Use what the cache has and no network (also HF_HUB_OFFLINE=1)");
}

Result<hub::Settings> HubSettings(const HubOptions& options, const std::string& cache_dir) {
  hub::Settings settings;
  settings.endpoint = HubEndpoint();
  TESSERA_RETURN_IF_ERROR(CheckHttpAddress("HF_ENDPOINT", settings.endpoint));
  TESSERA_ASSIGN_OR_RETURN(const std::filesystem::path home, HuggingFaceHome());
  const auto cache = FirstOf({"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"});
  settings.cache = !options.hf_cache_dir.empty() ? std::filesystem::path(options.hf_cache_dir)
                   : cache                       ? std::filesystem::path(*cache)
                                                 : home / "hub";
  TESSERA_ASSIGN_OR_RETURN(const std::filesystem::path own, CacheFolder(cache_dir));
  settings.downloads = own / "hub";
  settings.offline = options.offline || IsTrue(Environment("HF_HUB_OFFLINE"));
  TESSERA_ASSIGN_OR_RETURN(settings.token, Token(home));
  settings.ca_file =
      FirstOf({"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"}).value_or("");
  settings.aws = Aws();
  if (!settings.aws.endpoint.empty())
    TESSERA_RETURN_IF_ERROR(CheckHttpAddress("AWS_ENDPOINT_URL", settings.aws.endpoint));
  TESSERA_RETURN_IF_ERROR(ReadTimeout(&settings));
  return settings;
}

struct PullDisplay::State {
  enum class Kind : uint8_t { kBars, kJson, kNone };
  Kind kind = Kind::kBars;
  const Clock& clock = Clock::Real();
  TimePoint begin = clock.Now();
  std::optional<TimePoint> shown;
  std::unique_ptr<DownloadBars> bars;
  std::function<void(const DownloadFigures&)> on_download;
  std::string round;  // Which files.
  uint64_t fetched = 0;
  uint64_t fetched_before = 0;  // In earlier rounds.
  uint64_t first_done = 0;

  void Show(const hub::DownloadProgress& progress);
  void ShowJson(const DownloadFigures& figures);
  DownloadFigures FiguresOf(const hub::DownloadProgress& progress) const;
};

DownloadFigures PullDisplay::State::FiguresOf(const hub::DownloadProgress& progress) const {
  const double seconds = Seconds(clock.Now() - begin);
  const uint64_t come = progress.done - std::min(first_done, progress.done);
  return {progress, fetched_before + progress.fetched,
          seconds > 0 ? static_cast<double>(come) / seconds : 0,
          SecondsLeft(come, come + (progress.total - progress.done), seconds)};
}

void PullDisplay::State::ShowJson(const DownloadFigures& figures) {
  const hub::DownloadProgress& progress = figures.progress;
  const TimePoint now = clock.Now();
  const bool is_end = progress.done == progress.total;
  if (shown && !is_end && now - *shown < std::chrono::milliseconds(200)) return;
  shown = now;
  json::Array files;
  for (const auto& file : progress.files)
    files.push_back(json::Object{{"name", file.name}, {"done", file.done}, {"total", file.total}});
  json::Object line{{"event", "download"},
                    {"done", progress.done},
                    {"total", progress.total},
                    {"fetched", figures.fetched},
                    {"bytes_per_second", figures.bytes_per_second}};
  line["seconds_left"] =
      figures.seconds_left ? json::Value(*figures.seconds_left) : json::Value(nullptr);
  line["files"] = std::move(files);
  WriteStderr(json::Serialize(line) + "\n");
}

void PullDisplay::State::Show(const hub::DownloadProgress& progress) {
  if (progress.files.empty()) return;
  // Another round: an index first, then what it names.
  const std::string files =
      fmt::format("{} {}", progress.files.size(), progress.files.front().name);
  if (files != round) {
    round = files;
    begin = clock.Now();
    first_done = progress.done;
    fetched_before += std::exchange(fetched, 0);
    bars.reset();
  }
  fetched = progress.fetched;
  const DownloadFigures figures = FiguresOf(progress);
  if (on_download) on_download(figures);
  if (kind == Kind::kNone) return;
  if (kind == Kind::kJson) return ShowJson(figures);
  if (bars == nullptr) {
    if (progress.done == progress.total) return;  // All there: nothing to show.
    bars = std::make_unique<DownloadBars>();
  }
  bars->Show(figures);
}

PullDisplay::PullDisplay(const HubOptions& options) : state_(std::make_unique<State>()) {
  if (options.progress == "json") state_->kind = State::Kind::kJson;
  if (options.progress == "none") state_->kind = State::Kind::kNone;
  state_->on_download = options.on_download;
}

PullDisplay::~PullDisplay() = default;

hub::DownloadEvents PullDisplay::Events() {
  hub::DownloadEvents events;
  events.on_progress = [this](const hub::DownloadProgress& progress) { state_->Show(progress); };
  events.on_note = [this](const std::string& note) {
    if (state_->kind == State::Kind::kJson)
      return WriteStderr(json::Serialize(json::Object{{"event", "note"}, {"text", note}}) + "\n");
    Finish();
    Note("{}\n", note);
  };
  return events;
}

void PullDisplay::Finish() {
  if (state_->bars != nullptr) state_->bars->Finish();
  state_->bars.reset();
}

}  // namespace tessera::cli
