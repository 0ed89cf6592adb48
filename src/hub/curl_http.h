// SPDX-License-Identifier: Apache-2.0
//
// CurlHttp: Http over libcurl, the one place that knows it (with the address functions of http.cc).
// Keeps its connection between requests. Proxies come from libcurl's own variables (https_proxy,
// no_proxy, ...). Never decompresses: sizes and hashes are those of the file.
#pragma once

#include "hub/http.h"

namespace tessera::hub {

/// kUnavailable when libcurl does not start. `settings` is copied. The object may be made on one
/// thread and used on another, by one at a time.
Result<std::unique_ptr<Http>> NewCurlHttp(const Settings& settings);

}  // namespace tessera::hub
