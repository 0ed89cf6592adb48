// SPDX-License-Identifier: Apache-2.0
//
// tessera endpoints VERB: client of a gateway. Tables for people, --json for programs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cli/endpoint_fields.h"
#include "cli/endpoint_follow.h"
#include "cli/endpoint_report.h"
#include "cli/gateway_client.h"
#include "cli/terminal.h"
#include "cli/validators.h"
#include "cli/verbs.h"

namespace tessera::cli {
namespace {

// As timeout(1) has it: neither ready nor failed.
constexpr int kTimeoutExit = 124;
constexpr std::string_view kAll = "/v1/llm/model-endpoints";

struct Options {
  GatewayFlags gateway;
  std::string name;
  bool is_json = false;
  json::Object fields;  // create, update
  std::string file;
  std::vector<std::string> clear;
  bool wait = false;
  bool follow = false;
  int64_t timeout_seconds = 1800;
  std::string order = "oldest";
  std::optional<int64_t> limit;
  std::string after;
  std::optional<int64_t> min_workers, max_workers, per_worker;
  LogOptions log;
};

using Work = std::function<Status(const Options&, GatewayClient*)>;

Duration Patience(const Options& options) {
  return std::chrono::seconds(options.timeout_seconds);
}

/// "model_endpoints" of an answer; of one that has none: nothing.
json::Array ListOf(const json::Object& answer, std::string_view member) {
  const json::Value* list = json::Find(answer, member);
  return list != nullptr && list->is_array() ? list->get_array() : json::Array();
}

Status PrintJson(const json::Value& value) {
  return WriteStdout(json::SerializePretty(value));
}

/// What a changing verb ends with: the id of the change, or after --wait the record.
Status Accepted(const Options& options, GatewayClient* client, const std::string& name,
                const json::Object& answer) {
  if (!options.wait) {
    if (options.is_json) return PrintJson(answer);
    Note("{}: accepted; `tessera endpoints wait {}` tells when it is ready\n", name, name);
    return {};
  }
  TESSERA_ASSIGN_OR_RETURN(const json::Object record,
                           WaitUntilReady(client, name, Patience(options)));
  if (options.is_json) return PrintJson(record);
  Note("{}: ready ({})\n", name, TextAt(record, "status_reason"));
  return {};
}

/// The fields of --file under those of flags.
Result<json::Object> AskedFields(const Options& options) {
  json::Object body;
  if (!options.file.empty()) {
    TESSERA_ASSIGN_OR_RETURN(body, ReadFieldFile(options.file));
  }
  for (const auto& member : options.fields) body[member.key()] = member.value();
  return body;
}

/// What the API wants said and a person need not.
void FillDefaults(json::Object* body) {
  constexpr int64_t kWorkers = 1, kPerWorker = 8;
  const auto absent = [&](std::string_view name) { return json::Find(*body, name) == nullptr; };
  std::string filled;
  const auto fill = [&](std::string_view name, json::Value value) {
    if (!absent(name)) return;
    filled += fmt::format("{}{} {}", filled.empty() ? "" : ", ", name, json::Serialize(value));
    (*body)[name] = std::move(value);
  };
  const json::Value* high = json::Find(*body, "max_workers");
  // An endpoint that is off runs none.
  fill("min_workers", high != nullptr && *high == json::Value(0) ? 0 : kWorkers);
  const json::Value* low = json::Find(*body, "min_workers");
  fill("max_workers", low->is_int64() ? std::max(kWorkers, low->get_int64()) : kWorkers);
  fill("per_worker", kPerWorker);
  if (!filled.empty()) Note("{}\n", filled);
}

Status Create(const Options& options, GatewayClient* client) {
  TESSERA_ASSIGN_OR_RETURN(json::Object body, AskedFields(options));
  if (!options.name.empty()) body["name"] = options.name;
  if (json::Find(body, "name") == nullptr || json::Find(body, "model_name") == nullptr)
    return InvalidArgument(
        "an endpoint needs a NAME and a --model: tessera endpoints create chat "
        "--model org/repo");
  FillDefaults(&body);
  TESSERA_ASSIGN_OR_RETURN(const json::Object answer,
                           client->Call("POST", std::string(kAll), &body));
  return Accepted(options, client, TextAt(body, "name"), answer);
}

Status Update(const Options& options, GatewayClient* client) {
  TESSERA_ASSIGN_OR_RETURN(json::Object body, AskedFields(options));
  if (!options.clear.empty()) {
    json::Array names;
    for (const std::string& name : options.clear) names.emplace_back(name);
    body["clear"] = std::move(names);
  }
  if (body.empty())
    return InvalidArgument("nothing to change: name fields, such as --max-workers 4");
  TESSERA_ASSIGN_OR_RETURN(const json::Object answer,
                           client->CallEndpoint("PUT", options.name, "", &body));
  return Accepted(options, client, options.name, answer);
}

Status Scale(const Options& options, GatewayClient* client) {
  json::Object body;
  if (options.min_workers.has_value()) body["min_workers"] = *options.min_workers;
  if (options.max_workers.has_value()) body["max_workers"] = *options.max_workers;
  if (options.per_worker.has_value()) body["per_worker"] = *options.per_worker;
  if (body.empty()) return InvalidArgument("name at least one of --min, --max and --per-worker");
  TESSERA_ASSIGN_OR_RETURN(const json::Object answer,
                           client->CallEndpoint("PUT", options.name, "", &body));
  return Accepted(options, client, options.name, answer);
}

Status List(const Options& options, GatewayClient* client) {
  std::string target = fmt::format("{}?order_by={}", kAll, options.order);
  if (options.limit.has_value()) target += fmt::format("&limit={}", *options.limit);
  if (!options.after.empty()) target += "&after=" + hub::EscapePath(options.after);
  TESSERA_ASSIGN_OR_RETURN(const json::Object answer, client->Call("GET", target));
  if (options.is_json) return PrintJson(answer);
  return WriteStdout(EndpointTable(ListOf(answer, "model_endpoints"), StdoutStyle()));
}

Status Get(const Options& options, GatewayClient* client) {
  TESSERA_ASSIGN_OR_RETURN(const json::Object record, client->CallEndpoint("GET", options.name));
  if (options.is_json) return PrintJson(record);
  return WriteStdout(EndpointFacts(record, StdoutStyle()));
}

Status Delete(const Options& options, GatewayClient* client) {
  TESSERA_ASSIGN_OR_RETURN(const json::Object answer, client->CallEndpoint("DELETE", options.name));
  if (options.wait) TESSERA_RETURN_IF_ERROR(WaitUntilGone(client, options.name, Patience(options)));
  if (options.is_json) return PrintJson(answer);
  Note("{}: deleted{}\n", options.name,
       options.wait ? "" : "; its workers finish their calls and end");
  return {};
}

Status Restart(const Options& options, GatewayClient* client) {
  TESSERA_ASSIGN_OR_RETURN(const json::Object answer,
                           client->CallEndpoint("POST", options.name, "/restart"));
  return Accepted(options, client, options.name, answer);
}

Status Workers(const Options& options, GatewayClient* client) {
  TESSERA_ASSIGN_OR_RETURN(const json::Object answer,
                           client->CallEndpoint("GET", options.name, "/workers"));
  if (options.is_json) return PrintJson(answer);
  const json::Array workers = ListOf(answer, "workers");
  if (workers.empty()) Note("{}: no worker runs\n", options.name);
  return WriteStdout(WorkerTable(workers, StdoutStyle()));
}

Status Events(const Options& options, GatewayClient* client) {
  return PrintEvents(client, options.name, options.follow, options.is_json);
}

Status Logs(const Options& options, GatewayClient* client) {
  if (!options.is_json) {
    LogOptions log = options.log;
    log.follow = options.follow;
    return PrintLogs(client, options.name, log);
  }
  TESSERA_ASSIGN_OR_RETURN(const json::Object answer,
                           client->CallEndpoint("GET", options.name, "/logs"));
  return PrintJson(answer);
}

Status Wait(const Options& options, GatewayClient* client) {
  Options waiting = options;
  waiting.wait = true;
  return Accepted(waiting, client, options.name, {});
}

/// One verb below `endpoints`.
class Verb {
 public:
  Verb(CLI::App* endpoints, Context* context, const char* name, const char* summary, Work work)
      : options_(std::make_shared<Options>()), app_(endpoints->add_subcommand(name, summary)) {
    AddGatewayFlags(app_, &options_->gateway);
    app_->add_flag("--json", options_->is_json, "Facts as JSON on stdout");
    app_->callback([options = options_, context, work = std::move(work)] {
      bool is_late = false;
      RunVerb(context, [&]() -> Status {
        TESSERA_ASSIGN_OR_RETURN(GatewayClient client, GatewayClient::Open(options->gateway));
        Status status = work(*options, &client);
        is_late = status.code() == Code::kDeadlineExceeded;
        return status;
      });
      if (is_late) context->exit_code = kTimeoutExit;
    });
  }

  Options* operator->() const { return options_.get(); }
  CLI::App* app() const { return app_; }

  Verb& Name(const char* text = "Of the endpoint") {
    app_->add_option("NAME", options_->name, text)->required()->check(PlainText());
    return *this;
  }
  Verb& Waits(const char* until) {
    CLI::Option* wait = app_->add_flag("--wait", options_->wait, until);
    AddTimeout()->needs(wait);
    return *this;
  }
  CLI::Option* AddTimeout() {
    return app_
        ->add_option("--timeout", options_->timeout_seconds,
                     "Seconds of waiting; after them exit code 124")
        ->check(WholeNumber(0, 30 * 86400))
        ->capture_default_str();
  }
  Verb& Follows(const char* until) {
    app_->add_flag("-f,--follow", options_->follow, until);
    return *this;
  }

 private:
  std::shared_ptr<Options> options_;
  CLI::App* app_;
};

void AddChangingVerbs(CLI::App* endpoints, Context* context) {
  Verb create(endpoints, context, "create", "A new endpoint", Create);
  create.app()
      ->add_option("NAME", create->name, "Of the endpoint: at most 63 of a-z, 0-9 and -")
      ->check(PlainText());
  create.Waits("Wait until it is ready");
  AddFieldFlags(create.app(), &create->fields, &create->file, false);

  Verb update(endpoints, context, "update", "Change fields; workers are replaced one by one",
              Update);
  update.Name().Waits("Wait until it is ready");
  update.app()
      ->add_option("--clear", update->clear, "Fields to put back to what absent ones mean")
      ->delimiter(',')
      ->allow_extra_args(false);
  AddFieldFlags(update.app(), &update->fields, &update->file, true);

  Verb scale(endpoints, context, "scale", "Change how many workers there are", Scale);
  scale.Name().Waits("Wait until a call would be answered");
  scale.app()
      ->add_option("--min", scale->min_workers,
                   "Workers that always run; 0: none while nobody calls")
      ->check(WholeNumber(0));
  scale.app()
      ->add_option("--max", scale->max_workers, "Workers at most; 0 switches the endpoint off")
      ->check(WholeNumber(0));
  scale.app()
      ->add_option("--per-worker", scale->per_worker,
                   "Open calls that a worker should have: more bring another one")
      ->check(WholeNumber(1));

  Verb(endpoints, context, "restart", "New workers in place of those there are", Restart)
      .Name()
      .Waits("Wait until it is ready");
  Verb(endpoints, context, "delete", "Remove one; running calls are finished", Delete)
      .Name()
      .Waits("Wait until its workers have ended");
}

void AddLookingVerbs(CLI::App* endpoints, Context* context) {
  Verb list(endpoints, context, "list", "Those that you may use", List);
  list.app()
      ->add_option("--order-by", list->order, "Which come first")
      ->check(CLI::IsMember({"oldest", "newest", "alphabetical"}))
      ->capture_default_str();
  list.app()->add_option("--limit", list->limit, "At most so many")->check(WholeNumber(1));
  list.app()->add_option("--after", list->after, "Those behind this one")->check(PlainText());

  Verb(endpoints, context, "get", "All that is known of one", Get).Name();
  Verb(endpoints, context, "workers", "Its processes", Workers).Name();
  Verb(endpoints, context, "events", "What happened to it", Events)
      .Name()
      .Follows("Go on until it is deleted");
  Verb logs(endpoints, context, "logs", "What its workers wrote to stderr", Logs);
  logs.Name().Follows("Go on until it is deleted");
  logs.app()
      ->add_option("--worker", logs->log.worker, "Only of this one (its id)")
      ->check(PlainText());
  logs.app()
      ->add_option("-n,--lines", logs->log.lines, "The last so many of each worker")
      ->check(WholeNumber(0));
  Verb(endpoints, context, "wait",
       "Until a call would be answered; exit code 0 ready, 1 failed, 124 not in time", Wait)
      .Name()
      .AddTimeout();
}

}  // namespace

void AddEndpoints(CLI::App* app, Context* context) {
  CLI::App* verb =
      app->add_subcommand("endpoints", "Client of a gateway: create, watch, scale, delete");
  verb->require_subcommand(1);
  AddChangingVerbs(verb, context);
  AddLookingVerbs(verb, context);
}

}  // namespace tessera::cli
