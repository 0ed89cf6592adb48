// SPDX-License-Identifier: Apache-2.0
#include "text/chat_template.h"

#include <utility>

#include "text/textkit_abi.h"
#include "textkit_template.h"

namespace tessera::text {
namespace {

class TextkitTemplate final : public ChatTemplate {
 public:
  TextkitTemplate(tk_template* handle, std::string_view source)
      : handle_(handle), source_(source) {}
  ~TextkitTemplate() override { tk_template_free(handle_); }
  TextkitTemplate(const TextkitTemplate&) = delete;
  TextkitTemplate& operator=(const TextkitTemplate&) = delete;

  Result<std::string> Render(const RenderInput& input) const override {
    json::Object request;
    request["messages"] = input.messages;
    request["tools"] = input.tools;
    request["documents"] = input.documents;
    request["add_generation_prompt"] = input.add_generation_prompt;
    request["vars"] = input.vars;
    return RenderRequest(json::Serialize(request), input.now_unix_seconds);
  }

  Result<std::string> RenderRequest(std::string_view request_json,
                                    int64_t now_unix_seconds) const override {
    TextkitBuffer text, error;
    const tk_code code = tk_template_render(handle_, ToSlice(request_json), now_unix_seconds,
                                            text.out(), error.out());
    if (code != TK_OK) return Fail(FromTextkit(code, error));
    return text.str();
  }

  const std::string& source() const override { return source_; }

 private:
  tk_template* handle_;  // Owned.
  std::string source_;
};

}  // namespace

Result<std::shared_ptr<const ChatTemplate>> ChatTemplate::Parse(std::string_view source) {
  tk_template* handle = nullptr;
  TextkitBuffer error;
  const tk_code code = tk_template_parse(ToSlice(source), &handle, error.out());
  if (code != TK_OK) return Fail(FromTextkit(code, error));
  return std::make_shared<const TextkitTemplate>(handle, source);
}

}  // namespace tessera::text
