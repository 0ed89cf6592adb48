// SPDX-License-Identifier: Apache-2.0
//
// The server's whole path over bytes of a hostile peer, in memory. The first byte chooses how they
// are split. Checks that the handler sees only what the contract of Request promises, that answers
// and requests are counted alike, and that nothing is left when the peer goes. Bodies of
// paths under /u go to a receiver.
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

/// Refuses what holds an 'X'; told of the end at most once, with all the bytes before.
class Receiver final : public tessera::net::BodyReceiver {
 public:
  static constexpr uint64_t kBytesMax = 6000;

  std::optional<tessera::net::HttpError> OnBytes(std::string_view bytes) override {
    bytes_ += bytes.size();
    TESSERA_CHECK(!bytes.empty() && bytes_ <= kBytesMax && !is_over_);
    is_over_ = bytes.contains('X');
    if (is_over_) return tessera::net::HttpError{400, "x", "an X"};
    return std::nullopt;
  }
  void OnComplete(Request request, ResponseWriter writer) override {
    TESSERA_CHECK(!is_over_ && request.body.empty());
    is_over_ = true;
    Handle(request, writer);
  }

 private:
  uint64_t bytes_ = 0;
  bool is_over_ = false;
};

std::expected<tessera::net::BodyPlan, tessera::net::HttpError> PlanBody(const Request& head) {
  if (!head.path.starts_with("/u")) return tessera::net::BodyPlan{};
  return tessera::net::BodyPlan{.receiver = std::make_shared<Receiver>(),
                                .bytes_max = Receiver::kBytesMax};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  tessera::net::Limits limits;
  limits.header_bytes = 2048;
  limits.target_bytes = 512;
  limits.header_count = 16;
  limits.body_bytes = 4096;
  tessera::net::ConnectionHarness harness(Handle, limits, PlanBody);
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
