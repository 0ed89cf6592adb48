// SPDX-License-Identifier: Apache-2.0
#include "compiler/documents.h"

#include "base/check.h"
#include "base/json.h"
#include "bundle/manifest.h"
#include "bundle/shard.h"
#include "kernels/attention.h"

namespace tessera::compiler {
namespace {

/// The repository's file of that name; null if it has none.
const std::string* FindFile(const model::ModelSource& source, std::string_view name) {
  for (const model::RepositoryFile& file : source.files)
    if (file.name == name) return &file.text;
  return nullptr;
}

void Put(json::Object* object, std::string_view key, const auto& optional) {
  if (optional) object->emplace(key, *optional);
}

/// The keys of tokenizer_config.json that a server reads.
std::string MakeTokenizerConfig(const model::ModelSource& source) {
  const model::SpecialTokens& special = source.special_tokens;
  json::Object object;
  if (!special.bos_text.empty()) object.emplace("bos_token", special.bos_text);
  if (!special.eos_text.empty()) object.emplace("eos_token", special.eos_text);
  if (const auto* gguf = std::get_if<model::GgufTokenizer>(&source.tokenizer)) {
    Put(&object, "add_bos_token", gguf->add_bos);
    Put(&object, "add_eos_token", gguf->add_eos);
  }
  object.emplace("model_max_length", source.config.context_length);
  return json::SerializePretty(object);
}

std::string MakeGenerationConfig(const model::ModelSource& source) {
  json::Object object;
  Put(&object, "bos_token_id", source.special_tokens.bos_id);
  Put(&object, "pad_token_id", source.special_tokens.pad_id);
  json::Array eos;
  for (const int64_t id : source.special_tokens.eos_ids) eos.emplace_back(id);
  if (!eos.empty()) object.emplace("eos_token_id", std::move(eos));
  const model::GenerationDefaults& defaults = source.generation;
  Put(&object, "do_sample", defaults.do_sample);
  Put(&object, "temperature", defaults.temperature);
  Put(&object, "top_p", defaults.top_p);
  Put(&object, "top_k", defaults.top_k);
  Put(&object, "min_p", defaults.min_p);
  Put(&object, "repetition_penalty", defaults.repetition_penalty);
  return json::SerializePretty(object);
}

/// The repository's generation_config.json, except that `eos_token_id` lists every id that ends a
/// sequence: repositories scatter them over files that a bundle does not have.
std::string CompleteGenerationConfig(const std::string& text, const model::ModelSource& source) {
  auto parsed = json::Parse(text, {.unique_keys = false}, bundle::kGenerationConfigFile);
  if (!parsed.has_value() || !parsed->is_object()) return MakeGenerationConfig(source);
  json::Array eos;
  for (const int64_t id : source.special_tokens.eos_ids) eos.emplace_back(id);
  json::Object& object = parsed->get_object();
  const json::Value* named = json::Find(object, "eos_token_id");
  const bool complete =
      named != nullptr && (*named == eos || (eos.size() == 1 && *named == eos.front()));
  if (complete || eos.empty()) return text;
  object["eos_token_id"] = std::move(eos);
  return json::SerializePretty(*parsed);
}

}  // namespace

bundle::ServingConfig MakeServingConfig(const Module& module) {
  const bundle::Dims& d = module.program.dims;
  bundle::ServingConfig config;
  config.max_seq_len = d.max_seq_len;
  config.attn_head_dim = d.head_dim;
  config.prefill_batch_sizes = module.options.prefill_batch_sizes;
  config.has_prefill_position = true;
  config.decode_batch_sizes = module.options.decode_batch_sizes;
  config.transformer_block_count = d.layers;
  bundle::PagedKvCacheConfig paged;
  paged.attention_head_count_kv = d.kv_heads;
  paged.block_seq_stride = d.page_tokens;
  // Page 0 is never handed out by shortfin, hence one more than a sequence needs.
  const int64_t pages_of_one = (d.max_seq_len - 1) / d.page_tokens + 1;
  paged.device_block_count =
      module.options.device_block_count > 0 ? module.options.device_block_count : pages_of_one + 1;
  const auto elements = [&](int64_t kv_heads) {
    const kernels::KvLayout layout{d.layers, kv_heads, d.head_dim, d.page_tokens};
    return layout.PageBytes() / layout.ElementBytes();
  };
  const auto shares = bundle::PlanShares(module.program, module.options.tensor_parallel, true);
  TESSERA_CHECK(shares.has_value());  // The archives were made of them.
  for (const bundle::RankShare& share : *shares)
    paged.paged_kv_block_size_elements_per_device.push_back(elements(share.kv_heads.size()));
  config.paged_kv_cache = std::move(paged);
  return config;
}

std::vector<model::RepositoryFile> MakeDocuments(const CompileInput& input) {
  const model::ModelSource& source = *input.source;
  const auto choose = [&](const std::string& given, std::string_view name, auto make) {
    if (!given.empty()) return given;
    const std::string* file = FindFile(source, name);
    return file != nullptr ? *file : make(source);
  };
  std::vector<model::RepositoryFile> documents;
  documents.push_back(
      {std::string(bundle::kTokenizerConfigFile),
       choose(input.tokenizer_config_json, bundle::kTokenizerConfigFile, MakeTokenizerConfig)});
  documents.push_back(
      {std::string(bundle::kGenerationConfigFile),
       CompleteGenerationConfig(choose(input.generation_config_json, bundle::kGenerationConfigFile,
                                       MakeGenerationConfig),
                                source)});
  std::string chat_template = input.chat_template;
  if (chat_template.empty() && !source.chat_templates.empty())
    chat_template = source.chat_templates.front().text;
  if (!chat_template.empty())
    documents.push_back({std::string(bundle::kChatTemplateFile), std::move(chat_template)});
  return documents;
}

}  // namespace tessera::compiler
