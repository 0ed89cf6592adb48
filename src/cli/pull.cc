// SPDX-License-Identifier: Apache-2.0
//
// tessera pull MODEL: downloads what a model needs into the cache, verified, and prints where it
// is. Takes up again what an earlier call or crash left.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/environment.h"
#include "cli/hub_options.h"
#include "cli/model_argument.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

#include "base/json.h"
#include "base/utf8.h"
#include "formats/open.h"

namespace tessera::cli {
namespace {

/// A path is printed only if other verbs would take it; what was downloaded is a model already.
Status CheckPath(const ResolvedModel& model) {
  const bool is_path = model.repository == EscapeNonUtf8(model.path);
  if (!is_path || model.kind == ModelKind::kBundle) return {};
  return StatusOf(formats::Open(model.path));
}

struct Options {
  std::string model;
  std::string cache_dir;
  HubOptions hub;
  bool headers = false;
  bool json = false;
};

Status Pull(const Options& options) {
  const ModelNeed need = options.headers ? ModelNeed::kHeaders : ModelNeed::kWeights;
  TESSERA_ASSIGN_OR_RETURN(const ResolvedModel model,
                           ResolveModel(options.model, options.hub, options.cache_dir, need));
  TESSERA_RETURN_IF_ERROR(CheckPath(model));
  if (!options.json) {
    fmt::print("{}\n", model.path);
    return {};
  }
  json::Array verified;
  for (const ResolvedModel::Verified& file : model.verified)
    verified.push_back(json::Object{{"path", file.path}, {"sha256", file.sha256}});
  fmt::print("{}", json::SerializePretty(json::Object{{"path", model.path},
                                                      {"repository", model.repository},
                                                      {"revision", model.revision},
                                                      {"licence", model.licence},
                                                      {"fetched_bytes", model.fetched},
                                                      {"verified", std::move(verified)}}));
  return {};
}

}  // namespace

void AddPull(CLI::App* app, Context* context) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app->add_subcommand(
      "pull", "Download a model into the cache: resumable, verified; prints where it is");
  verb->add_option("MODEL", options->model, kModelHelp)->required();
  AddHubOptions(verb, &options->hub);
  verb->add_option("--cache-dir", options->cache_dir,
                   "Where files from plain addresses and buckets are kept");
  verb->add_option("--progress", options->hub.progress,
                   "auto: a bar or lines; json: an object a line on stderr; none")
      ->check(CLI::IsMember({"auto", "json", "none"}))
      ->capture_default_str();
  verb->add_flag("--headers", options->headers,
                 "Of weight files only the headers: enough for plan and inspect");
  verb->add_flag("--json", options->json, "Facts as JSON on stdout");
  verb->callback([options, context] { RunVerb(context, [&] { return Pull(*options); }); });
}

}  // namespace tessera::cli
