// SPDX-License-Identifier: Apache-2.0
#include "hub/hub_api.h"

#include <fmt/format.h>

#include <optional>

#include "base/utf8.h"
#include "hub/limits.h"
#include "hub/patience.h"

namespace tessera::hub {
namespace {

constexpr int kMaxSilentTries = 3;

std::string Header(const HttpHead& head, std::string_view name) {
  const std::string* text = head.Find(name);
  return text != nullptr ? EscapeNonUtf8(text->substr(0, 200)) : "";
}

bool IsPassing(int status) {
  return status == 408 || status == 429 || status >= 500;
}

}  // namespace

Status RefusalOf(const HttpHead& head, const Settings& settings, const std::string& repository,
                 const std::string& revision) {
  const std::string code = Header(head, "x-error-code");
  const std::string page = fmt::format("{}/{}", settings.endpoint, repository);
  if (code == "RevisionNotFound")
    return NotFound(fmt::format("{} has no revision \"{}\": {}/tree/main lists what there is",
                                repository, revision, page));
  if (code == "EntryNotFound")
    return NotFound(fmt::format(
        "{}@{} does not have a file that the hub lists: try again, or name another revision",
        repository, revision));
  if (code == "GatedRepo" || head.status == 403)
    return PermissionDenied(fmt::format(
        "{} is gated: accept its licence at {} and set HF_TOKEN to a token of that account",
        repository, page));
  if (head.status == 401 && !settings.token.empty() && code != "RepoNotFound")
    return Unauthenticated(
        fmt::format("{} refuses the token that was given: make a new one and set HF_TOKEN to it",
                    settings.endpoint));
  if (head.status == 401 || head.status == 404)
    return NotFound(fmt::format(
        "{} has no repository {}{}", settings.endpoint, repository,
        settings.token.empty()
            ? " that may be seen without a token: check the name, or set HF_TOKEN if it is private"
            : " that this token may see: check the name"));
  if (head.status == 429)
    return Unavailable(fmt::format(
        "{} allows no more requests for now (429){}: wait, or set HF_TOKEN for a higher limit",
        settings.endpoint, settings.token.empty() ? "" : " for this token"));
  const std::string message = Header(head, "x-error-message");
  return Unavailable(fmt::format("{} answers {}{}{}", WithoutQuery(head.url), head.status,
                                 message.empty() ? "" : ": ", message));
}

std::string FileUrl(const Settings& settings, const std::string& repository,
                    const std::string& commit, const std::string& file) {
  return fmt::format("{}/{}/resolve/{}/{}", settings.endpoint, repository, commit,
                     EscapePath(file));
}

Result<Listing> GetListing(Http& http, const Settings& settings, const std::string& repository,
                           const std::string& revision) {
  HttpRequest request;
  // A slash in a branch's name is part of one segment here.
  std::string escaped = EscapePath(revision);
  for (size_t at = 0; (at = escaped.find('/', at)) != std::string::npos; at += 3)
    escaped.replace(at, 1, "%2F");
  request.url = fmt::format("{}/api/models/{}/revision/{}?blobs=true", settings.endpoint,
                            repository, escaped);
  request.bearer = settings.token;
  request.time_limit = settings.answer_timeout();
  Patience patience(settings);
  int silent = 0;
  for (;;) {
    auto text = GetText(http, request, kMaxListingBytes);
    std::optional<std::chrono::milliseconds> asked;
    Status status;
    if (text.has_value() && text->head.ok())
      return ParseListing(text->body, WithoutQuery(request.url));
    if (text.has_value()) {
      status = RefusalOf(text->head, settings, repository, revision);
      if (!IsPassing(text->head.status)) return Fail(std::move(status));
      asked = RetryAfter(text->head);
    } else {
      status = text.error();
      if (status.code() != Code::kUnavailable) return Fail(std::move(status));
      // Nobody there: that seldom changes while somebody waits for an answer.
      if (++silent == kMaxSilentTries)
        return Fail(std::move(status).WithContext("the hub does not answer"));
    }
    if (!patience.Wait(asked)) return Fail(std::move(status));
  }
}

}  // namespace tessera::hub
