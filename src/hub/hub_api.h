// SPDX-License-Identifier: Apache-2.0
//
// HubApi: the questions that we ask a hub, and its refusals as sentences that say what to do.
// Blocks; an object belongs to one thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "hub/http.h"
#include "hub/listing.h"
#include "hub/settings.h"

namespace tessera::hub {

/// What a revision holds now. kNotFound: no such repository or revision; kPermissionDenied: gated;
/// kUnauthenticated: a token is missing or refused; kUnavailable: no answer within
/// Settings::api_patience, retries and Retry-After included; others as ParseListing.
Result<Listing> GetListing(Http& http, const Settings& settings, const std::string& repository,
                           const std::string& revision);

/// What an answer that is no 2xx means.
Status RefusalOf(const HttpHead& head, const Settings& settings, const std::string& repository,
                 const std::string& revision);

/// The address of one file at one commit.
std::string FileUrl(const Settings& settings, const std::string& repository,
                    const std::string& commit, const std::string& file);

}  // namespace tessera::hub
