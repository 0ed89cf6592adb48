// SPDX-License-Identifier: Apache-2.0
//
// FetchHeaders: weight files of their true size with nothing but the header in them (the rest is a
// hole), for readers that look at headers only. Kept apart from real files.
#pragma once

#include <filesystem>
#include <span>

#include "base/status.h"
#include "hub/download.h"
#include "hub/http.h"
#include "hub/settings.h"

namespace tessera::hub {

/// Makes `folder`/<name> for each file, several at a time. `target` and `lock` of the files are not
/// used. Gives the body bytes received. kUnavailable when nothing comes for
/// Settings::api_patience; others as HeaderBytesNeeded and Download.
Result<uint64_t> FetchHeaders(std::span<const DownloadFile> files,
                              const std::filesystem::path& folder, const Settings& settings,
                              const HttpFactory& http);

}  // namespace tessera::hub
