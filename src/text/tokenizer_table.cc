// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer_table.h"

#include <utility>

#include "base/file.h"
#include "text/textkit_abi.h"
#include "text/textkit_tokenizer_handle.h"
#include "textkit_tokenizer.h"

namespace tessera::text {
namespace {

/// `owner` keeps `bytes` alive until textkit releases it.
template <typename Owner>
Result<std::shared_ptr<const Tokenizer>> Open(tk_slice bytes, Owner owner) {
  auto kept = std::make_unique<Owner>(std::move(owner));
  tk_tokenizer* handle = nullptr;
  TextkitBuffer error;
  const tk_code code = tk_tokenizer_from_table(
      bytes, [](void* context) { delete static_cast<Owner*>(context); }, kept.release(), &handle,
      error.out());
  TESSERA_RETURN_IF_ERROR(FromTextkit(code, error));
  return AdoptTokenizer(handle);
}

}  // namespace

Result<std::string> MakeTokenizerTable(const Tokenizer& tokenizer) {
  const auto* textkit = dynamic_cast<const TextkitTokenizerHandle*>(&tokenizer);
  if (textkit == nullptr) return Fail(Unimplemented("no stored form: not a textkit tokenizer"));
  TextkitBuffer table;
  TextkitBuffer error;
  const tk_code code = tk_tokenizer_to_table(textkit->handle(), table.out(), error.out());
  TESSERA_RETURN_IF_ERROR(FromTextkit(code, error));
  return table.str();
}

Result<std::shared_ptr<const Tokenizer>> OpenTokenizerTable(const std::filesystem::path& path) {
  TESSERA_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  const ByteSpan bytes = file->bytes();
  auto tokenizer = Open({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, file);
  if (!tokenizer.has_value()) return Fail(tokenizer.error().WithContext(path.string()));
  return tokenizer;
}

Result<std::shared_ptr<const Tokenizer>> ReadTokenizerTable(std::string_view bytes) {
  auto copy = std::make_shared<const std::string>(bytes);
  return Open(ToSlice(*copy), copy);
}

}  // namespace tessera::text
