// SPDX-License-Identifier: Apache-2.0
//
// A GGUF as a model: config, tokenizer, special tokens, chat templates and sampling defaults of its
// metadata are refused or hold what their headers promise; an accepted config gives a graph that
// verifies. Nothing grows with numbers in the file.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "formats/gguf/reader.h"
#include "graph/verify.h"
#include "model/build.h"
#include "model/chat_templates.h"
#include "model/generation_defaults.h"
#include "model/gguf_config.h"
#include "model/gguf_tokenizer.h"
#include "model/special_tokens.h"

namespace {

namespace model = tessera::model;
using tessera::formats::Metadata;
using tessera::formats::ParameterIndex;

void CheckModelConfig(const ParameterIndex& index) {
  const auto config = model::ReadGgufConfig(index);
  if (!config.has_value()) return;
  TESSERA_CHECK(model::CheckConfig(*config).ok());
  const auto graph = model::BuildGraph(*config);
  if (!graph.has_value()) return;
  TESSERA_CHECK(tessera::graph::Verify(*graph).ok());
}

void CheckTokenizer(const Metadata& metadata) {
  const auto tokenizer = model::ReadGgufTokenizer(metadata);
  if (!tokenizer.has_value()) return;
  const auto size = static_cast<int64_t>(tokenizer->tokens.size());
  const auto special = model::ReadGgufSpecialTokens(metadata, *tokenizer);
  if (!special.has_value()) return;
  TESSERA_CHECK(special->bos_id.value_or(-1) < size && special->pad_id.value_or(-1) < size);
  for (const int64_t id : special->eos_ids) TESSERA_CHECK(id >= 0 && id < size);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const tessera::ByteSpan bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto index = tessera::formats::gguf::Parse(bytes, "input.gguf");
  if (!index.has_value()) return 0;
  CheckModelConfig(*index);
  CheckTokenizer(index->metadata());
  if (const auto templates = model::ReadGgufChatTemplates(index->metadata()); templates.has_value())
    for (const auto& chat_template : *templates) TESSERA_CHECK(!chat_template.name.empty());
  (void)model::ReadGgufGeneration(index->metadata());
  return 0;
}
