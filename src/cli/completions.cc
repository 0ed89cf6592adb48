// SPDX-License-Identifier: Apache-2.0
//
// tessera completions NAME: one completion of an endpoint, as it is generated. The answer alone
// goes to stdout.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/endpoint_report.h"
#include "cli/gateway_client.h"
#include "cli/terminal.h"
#include "cli/validators.h"
#include "cli/verbs.h"

#include "gateway/limits.h"
#include "gateway/spec/read_spec.h"
#include "net/sse.h"

namespace tessera::cli {
namespace {

struct Options {
  GatewayFlags gateway;
  std::string name;
  std::optional<std::string> prompt;
  int64_t tokens = 256;
  double temperature = 0.2;
  std::optional<double> top_p;
  std::optional<int64_t> top_k;
  std::vector<std::string> stop;
  bool is_json = false;
};

Result<std::string> Prompt(const Options& options) {
  if (options.prompt.has_value()) return *options.prompt;
  std::string text;
  char buffer[65536];
  for (size_t got; (got = std::fread(buffer, 1, sizeof buffer, stdin)) > 0;) {
    text.append(buffer, got);
    if (text.size() > gateway::kRequestBytesMax)
      return Fail(ResourceExhausted(
          fmt::format("stdin has more than {} bytes", gateway::kRequestBytesMax)));
  }
  return text;
}

json::Object Body(const Options& options, const std::string& prompt) {
  json::Object body{
      {"prompt", prompt}, {"max_new_tokens", options.tokens}, {"temperature", options.temperature}};
  if (options.top_p.has_value()) body["top_p"] = *options.top_p;
  if (options.top_k.has_value()) body["top_k"] = *options.top_k;
  if (!options.stop.empty()) {
    json::Array stop;
    for (const std::string& text : options.stop) stop.emplace_back(text);
    body["stop_sequences"] = std::move(stop);
  }
  return body;
}

/// One chunk: its text to stdout, its error as a Status.
Status PrintChunk(const std::string& data) {
  TESSERA_ASSIGN_OR_RETURN(const json::Value value, json::Parse(data, {}, "chunk"));
  if (!value.is_object()) return DataLoss("a chunk of the answer is no object");
  const json::Object& chunk = value.get_object();
  if (json::Find(chunk, "error") != nullptr)
    return Unavailable(
        fmt::format("the answer broke off: {}", TextAt(chunk, "error.content.error")));
  return WriteStdout(TextAt(chunk, "output.text"));
}

Status StreamAnswer(const Options& options, GatewayClient* client, const json::Object& body) {
  Status broken;
  net::SseParser parser([&](const net::SseEvent& event) {
    if (broken.ok() && !event.data.empty()) broken = PrintChunk(event.data);
  });
  const auto take = [&](std::string_view bytes) -> Status {
    const Status fed = parser.Feed(bytes);
    return broken.ok() ? fed : broken;
  };
  TESSERA_RETURN_IF_ERROR(
      client->Stream("/v1/llm/completions-stream?model_endpoint_name=" + options.name, body, take));
  return WriteStdout("\n");
}

Status Complete(const Options& options) {
  TESSERA_ASSIGN_OR_RETURN(GatewayClient client, GatewayClient::Open(options.gateway));
  if (!gateway::IsEndpointName(options.name)) return client.UnknownEndpoint(options.name);
  TESSERA_ASSIGN_OR_RETURN(const std::string prompt, Prompt(options));
  const json::Object body = Body(options, prompt);
  const auto run = [&]() -> Status {
    if (!options.is_json) return StreamAnswer(options, &client, body);
    TESSERA_ASSIGN_OR_RETURN(
        const json::Object answer,
        client.Call("POST", "/v1/llm/completions-sync?model_endpoint_name=" + options.name, &body));
    return WriteStdout(json::SerializePretty(answer));
  };
  Status status = run();
  return status.code() == Code::kNotFound ? client.UnknownEndpoint(options.name) : status;
}

}  // namespace

void AddCompletions(CLI::App* app, Context* context) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app->add_subcommand("completions", "A completion by an endpoint of a gateway");
  AddGatewayFlags(verb, &options->gateway);
  verb->add_option("NAME", options->name, "Of the endpoint")->required()->check(PlainText());
  verb->add_option("-p,--prompt", options->prompt, "The text to go on with (else stdin)");
  verb->add_option("-n,--max-tokens", options->tokens, "Tokens at most")
      ->check(WholeNumber(1, 2147483647))
      ->capture_default_str();
  verb->add_option("--temperature", options->temperature, "Spread of the choice; 0 is greedy")
      ->check(Number(0, 1))
      ->capture_default_str();
  verb->add_option("--top-p", options->top_p, "Smallest set with this probability")
      ->check(Number(0, 1));
  verb->add_option("--top-k", options->top_k, "The k likeliest; -1 is all")
      ->check(WholeNumber(-1, 2147483647));
  verb->add_option("--stop", options->stop, "Text that ends the answer; may be given again")
      ->allow_extra_args(false);
  verb->add_flag("--json", options->is_json, "The whole answer as JSON, when it is complete");
  verb->callback([options, context] { RunVerb(context, [&] { return Complete(*options); }); });
}

}  // namespace tessera::cli
