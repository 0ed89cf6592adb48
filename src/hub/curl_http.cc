// SPDX-License-Identifier: Apache-2.0
#include "hub/curl_http.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "base/clock.h"
#include "base/utf8.h"
#include "hub/limits.h"
#include "hub/sigv4.h"

namespace tessera::hub {
namespace {

// Body bytes that one call of the sink gets at most; fewer calls, fewer writes.
constexpr long kBufferBytes = 256 << 10;

/// One answer on its way through libcurl's callbacks.
struct Transfer {
  const HttpSink* sink = nullptr;
  HttpHead head;
  size_t header_bytes = 0;
  size_t error_bytes_max = kMaxErrorBodyBytes;
  bool head_seen = false;
  Status error;  // Of a sink or a limit: what ended the transfer.
};

/// "HTTP/1.1 200 OK" begins an answer; those of 1xx and of proxies come before the one that counts.
size_t OnHeader(char* data, size_t size, size_t count, void* user) {
  auto* transfer = static_cast<Transfer*>(user);
  std::string_view line(data, size * count);
  transfer->header_bytes += line.size();
  if (transfer->header_bytes > kMaxResponseHeaderBytes) {
    transfer->error = ResourceExhausted(
        fmt::format("{}: the header of the answer has more than the limit of {} bytes",
                    WithoutQuery(transfer->head.url), kMaxResponseHeaderBytes));
    return 0;
  }
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  if (line.starts_with("HTTP/")) {
    transfer->head.headers.clear();
    return size * count;
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return size * count;
  std::string name(line.substr(0, colon));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  std::string_view value = line.substr(colon + 1);
  while (value.starts_with(' ') || value.starts_with('\t')) value.remove_prefix(1);
  while (value.ends_with(' ') || value.ends_with('\t')) value.remove_suffix(1);
  transfer->head.headers.emplace_back(std::move(name), value);
  return size * count;
}

class CurlHttp final : public Http {
 public:
  CurlHttp(CURL* curl, Settings settings) : curl_(curl), settings_(std::move(settings)) {}
  ~CurlHttp() override { curl_easy_cleanup(curl_); }
  CurlHttp(const CurlHttp&) = delete;
  CurlHttp& operator=(const CurlHttp&) = delete;

  Result<HttpHead> OneHop(const HttpRequest& request, const HttpSink& sink) override {
    curl_easy_reset(curl_);  // Options only: connections stay.
    transfer_ = {};
    transfer_.sink = &sink;
    transfer_.head.url = request.url;
    std::array<char, CURL_ERROR_SIZE> reason{};
    SetTransfer(reason.data(), request.url);
    transfer_.error_bytes_max = request.error_bytes_max;
    Headers headers;
    SetRequest(request, &headers);
    SetMethod(request, &headers);
    curl_easy_setopt(curl_, CURLOPT_HTTPHEADER, headers.list);
    const CURLcode code = curl_easy_perform(curl_);
    if (!transfer_.error.ok()) return Fail(std::move(transfer_.error));
    if (code != CURLE_OK) return Fail(TransferError(code, reason.data(), request.url));
    if (Status status = SeeHead(); !status.ok()) return Fail(std::move(status));
    return std::move(transfer_.head);
  }

 private:
  struct Headers {
    curl_slist* list = nullptr;
    ~Headers() { curl_slist_free_all(list); }
    void Add(const std::string& line) { list = curl_slist_append(list, line.c_str()); }
  };

  void SetTransfer(char* reason, const std::string& url) {
    const auto seconds = [](std::chrono::milliseconds time) {
      return std::max<long>(1, static_cast<long>((time.count() + 999) / 1000));
    };
    curl_easy_setopt(curl_, CURLOPT_URL, url.c_str());
    curl_easy_setopt(curl_, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl_, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl_, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl_, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);  // One flow a connection.
    curl_easy_setopt(curl_, CURLOPT_USERAGENT, "tessera/" TESSERA_VERSION);
    curl_easy_setopt(curl_, CURLOPT_ERRORBUFFER, reason);
    curl_easy_setopt(curl_, CURLOPT_BUFFERSIZE, kBufferBytes);
    curl_easy_setopt(curl_, CURLOPT_CONNECTTIMEOUT_MS,
                     static_cast<long>(settings_.connect_timeout.count()));
    curl_easy_setopt(curl_, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl_, CURLOPT_LOW_SPEED_TIME, seconds(settings_.stall_timeout));
    curl_easy_setopt(curl_, CURLOPT_HEADERFUNCTION, OnHeader);
    curl_easy_setopt(curl_, CURLOPT_HEADERDATA, &transfer_);
    curl_easy_setopt(curl_, CURLOPT_WRITEFUNCTION, &CurlHttp::OnBody);
    curl_easy_setopt(curl_, CURLOPT_WRITEDATA, this);
    if (!settings_.ca_file.empty())
      curl_easy_setopt(curl_, CURLOPT_CAINFO, settings_.ca_file.c_str());
  }

  void SetRequest(const HttpRequest& request, Headers* headers) {
    curl_easy_setopt(curl_, CURLOPT_TIMEOUT_MS, static_cast<long>(request.time_limit.count()));
    if (!request.bearer.empty()) headers->Add("Authorization: Bearer " + request.bearer);
    if (request.range)
      headers->Add(fmt::format("Range: bytes={}-{}", request.range->begin, request.range->end - 1));
    if (!request.if_range.empty()) headers->Add("If-Range: " + request.if_range);
    if (request.aws == nullptr || request.aws->access_key.empty()) return;
    const SigV4Request to_sign{
        request.url, "s3", Clock::Real().UnixSeconds(), {EmptyPayloadHeader()}};
    for (const auto& [name, value] : SignGet(*request.aws, to_sign))
      headers->Add(fmt::format("{}: {}", name, value));
  }

  /// `request` must outlive the transfer: its body is not copied.
  void SetMethod(const HttpRequest& request, Headers* headers) {
    if (request.is_direct) curl_easy_setopt(curl_, CURLOPT_NOPROXY, "*");
    if (request.method == "GET") return;
    curl_easy_setopt(curl_, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    if (!request.json_body.has_value()) return;
    curl_easy_setopt(curl_, CURLOPT_POSTFIELDS, request.json_body->data());
    curl_easy_setopt(curl_, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.json_body->size()));
    headers->Add("Content-Type: application/json");
    headers->Add("Expect:");  // Waiting for "100 Continue" would only cost time.
  }

  /// Once a request: its head is complete when the body begins or the transfer ends.
  Status SeeHead() {
    if (std::exchange(transfer_.head_seen, true)) return {};
    long status = 0;
    curl_easy_getinfo(curl_, CURLINFO_RESPONSE_CODE, &status);
    transfer_.head.status = static_cast<int>(status);
    if (!transfer_.head.ok() || !transfer_.sink->on_head) return {};
    return transfer_.sink->on_head(transfer_.head);
  }

  Status TakeBody(ByteSpan bytes) {
    TESSERA_RETURN_IF_ERROR(SeeHead());
    if (transfer_.head.ok()) return transfer_.sink->on_body(bytes);
    std::string& text = transfer_.head.error_text;
    text += AsText(bytes.first(std::min(bytes.size(), transfer_.error_bytes_max - text.size())));
    return {};
  }

  static size_t OnBody(char* data, size_t size, size_t count, void* user) {
    auto* self = static_cast<CurlHttp*>(user);
    self->transfer_.error = self->TakeBody(AsBytes({data, size * count}));
    return self->transfer_.error.ok() ? size * count : 0;
  }

  static Status TransferError(CURLcode code, const char* reason, const std::string& url) {
    const std::string text =
        fmt::format("{}: {}", WithoutQuery(url),
                    EscapeNonUtf8(*reason != '\0' ? reason : curl_easy_strerror(code)));
    switch (code) {
      case CURLE_URL_MALFORMAT:
      case CURLE_UNSUPPORTED_PROTOCOL:
        return InvalidArgument(text);
      case CURLE_PEER_FAILED_VERIFICATION:
        // "not yet valid" and "has expired" are as often the clock's fault as the certificate's.
        if (text.find("yet valid") != std::string::npos ||
            text.find("expired") != std::string::npos)
          return FailedPrecondition(text + "; compare this machine's clock (date) with another's");
        [[fallthrough]];
      case CURLE_SSL_CACERT_BADFILE:
        return FailedPrecondition(
            text + "; $SSL_CERT_FILE names the certificates to trust, if a proxy has its own");
      case CURLE_OUT_OF_MEMORY:
        return ResourceExhausted(text + ", or a line of the answer's header without end");
      default:
        return Unavailable(text);
    }
  }

  CURL* curl_;
  Settings settings_;
  Transfer transfer_;
};

}  // namespace

Result<std::unique_ptr<Http>> NewCurlHttp(const Settings& settings) {
  static std::once_flag once;  // curl_global_init is not for two threads at a time.
  static CURLcode started = CURLE_FAILED_INIT;
  std::call_once(once, [] { started = curl_global_init(CURL_GLOBAL_DEFAULT); });
  CURL* curl = started == CURLE_OK ? curl_easy_init() : nullptr;
  if (curl == nullptr) return Fail(Unavailable("libcurl does not start"));
  return std::unique_ptr<Http>(new CurlHttp(curl, settings));
}

}  // namespace tessera::hub
