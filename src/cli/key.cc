// SPDX-License-Identifier: Apache-2.0
//
// tessera key NAME: a new API key for `serve --api-keys`. The key is printed once and kept nowhere;
// its entry, which holds only a hash, goes to stdout as well or, with --add, into the file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "cli/validators.h"
#include "cli/verbs.h"

#include "access/api_key.h"
#include "access/key_file.h"
#include "access/limits.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"

namespace tessera::cli {
namespace {

struct Options {
  std::string name;
  std::vector<std::string> scopes = {"inference"};
  int64_t priority = 0;
  int64_t rpm = 0, tpm = 0, concurrency = 0;
  std::string expires;
  std::string add;
};

Result<access::ApiKey> MakeEntry(const Options& options, const std::string& key) {
  TESSERA_RETURN_IF_ERROR(access::CheckKeyName(options.name).WithContext("NAME"));
  access::ApiKey entry;
  entry.name = options.name;
  entry.digest = access::DigestOf(key);
  entry.scopes = 0;
  for (const std::string& name : options.scopes)
    if (const auto scope = access::ScopeNamed(name)) entry.scopes |= access::ScopeBit(*scope);
  entry.priority = static_cast<int32_t>(options.priority);
  entry.limits = {.requests_per_minute = options.rpm,
                  .tokens_per_minute = options.tpm,
                  .concurrency = options.concurrency};
  if (options.expires.empty()) return entry;
  entry.expires = access::ParseUtcTime(options.expires);
  if (!entry.expires.has_value())
    return Fail(InvalidArgument(fmt::format(
        "--expires is '{}', expected 2027-01-31 or 2027-01-31T12:00:00Z (UTC)", options.expires)));
  if (*entry.expires <= Clock::Real().UnixSeconds())
    return Fail(InvalidArgument(fmt::format("--expires {} is over", options.expires)));
  return entry;
}

/// The file with one entry more; a new one if there is none.
Status AddTo(const std::filesystem::path& path, const access::ApiKey& key) {
  std::vector<access::ApiKey> keys;
  if (IsPresent(path)) {
    TESSERA_ASSIGN_OR_RETURN(keys, access::ReadKeyFile(path));
  }
  keys.push_back(key);
  TESSERA_RETURN_IF_ERROR(access::CheckUnique(keys).WithContext(path.string()));
  if (keys.size() > access::kKeysMax)
    return ResourceExhausted(
        fmt::format("{}: more keys than the limit of {}", path.string(), access::kKeysMax));
  json::Array entries;
  for (const access::ApiKey& each : keys) entries.push_back(access::KeyEntry(each));
  json::Object file;
  file["keys"] = std::move(entries);
  return WriteFileAtomic(path, json::SerializePretty(file));
}

Status MakeKey(const Options& options) {
  const std::string key = access::MakeKey();
  TESSERA_ASSIGN_OR_RETURN(const access::ApiKey entry, MakeEntry(options, key));
  if (!options.add.empty()) {
    TESSERA_RETURN_IF_ERROR(AddTo(options.add, entry));
    Note("added {} to {}; a running server reads it on SIGHUP. The key is shown this once:\n",
         options.name, options.add);
    return WriteStdout(key + "\n");
  }
  Note("The key, shown this once, and its entry in the list \"keys\" of a key file:\n");
  return WriteStdout(fmt::format("{}\n{}\n", key, json::Serialize(access::KeyEntry(entry))));
}

}  // namespace

void AddKey(CLI::App* app, Context* context) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app->add_subcommand("key", "A new API key for serve --api-keys");
  verb->add_option("NAME", options->name, "Whose it is: letters, digits and . _ @ -")
      ->required()
      ->check(PlainText());
  verb->add_option("--scope", options->scopes, "What it may call: inference, metrics, admin")
      ->check(CLI::IsMember({"inference", "metrics", "admin"}))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  verb->add_option("--priority", options->priority,
                   "Its class: the best priority that its requests may ask for, and their usual "
                   "one; lesser ones come first")
      ->check(WholeNumber(-access::kPriorityMax, access::kPriorityMax))
      ->capture_default_str();
  verb->add_option("--rpm", options->rpm, "Requests a minute (default: no limit)")
      ->check(WholeNumber(1, access::kKeyRateMax));
  verb->add_option("--tpm", options->tpm,
                   "Tokens a minute, of prompts and answers (default: no limit)")
      ->check(WholeNumber(1, access::kKeyRateMax));
  verb->add_option("--concurrency", options->concurrency,
                   "Requests at the same time (default: no limit)")
      ->check(WholeNumber(1, access::kKeyConcurrencyMax));
  verb->add_option("--expires", options->expires,
                   "From when on it is no key: 2027-01-31 or 2027-01-31T12:00:00Z, UTC")
      ->check(PlainText());
  verb->add_option("--add", options->add,
                   "Put the entry into this key file, made if it is not there, and print the key "
                   "alone")
      ->check(PlainText());
  verb->callback([options, context] { RunVerb(context, [&] { return MakeKey(*options); }); });
}

}  // namespace tessera::cli
