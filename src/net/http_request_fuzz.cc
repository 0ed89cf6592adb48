// SPDX-License-Identifier: Apache-2.0
//
// The server's whole path over bytes of a hostile peer, in memory. The first byte chooses how they
// are split. Checks that the handler sees only what the contract of Request promises, that answers
// and requests are counted alike, and that nothing is left when the peer goes.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "net/connection_harness.h"

namespace {

using tessera::net::Request;
using tessera::net::ResponseWriter;

void Handle(const Request& request, const ResponseWriter& writer) {
  TESSERA_CHECK(!request.method.empty() && !request.path.empty());
  TESSERA_CHECK(!request.path.contains('\0') && !request.path.contains('\n'));
  for (const std::string& segment : request.segments) TESSERA_CHECK(segment != "..");
  TESSERA_CHECK(request.version_minor == 0 || request.headers.Has("Host"));
  TESSERA_CHECK(request.headers.Check().ok());
  if (request.body.size() % 2 == 0) {
    TESSERA_CHECK(writer.Send(tessera::net::Response::Text(200, request.path)).ok());
    return;
  }
  TESSERA_CHECK(writer.StartStream(200, {}).ok());
  (void)writer.Write(request.body);
  TESSERA_CHECK(writer.Finish().ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  tessera::net::Limits limits;
  limits.header_bytes = 2048;
  limits.target_bytes = 512;
  limits.header_count = 16;
  limits.body_bytes = 4096;
  tessera::net::ConnectionHarness harness(Handle, limits);
  harness.link().SetGrain(data[0] == 0 ? SIZE_MAX : data[0]);
  harness.Talk(std::string_view(reinterpret_cast<const char*>(data) + 1, size - 1));
  harness.link().CloseSend();
  harness.link().Run();
  harness.link().Advance(std::chrono::hours(1));
  TESSERA_CHECK(harness.link().is_closed());
  TESSERA_CHECK(harness.counters().open == 0 && harness.counters().requests_open == 0);
  TESSERA_CHECK(harness.counters().body_bytes == 0);
  return 0;
}
