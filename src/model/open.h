// SPDX-License-Identifier: Apache-2.0
//
// The one door to a model on disk: a GGUF file (or piece of a split one, or a folder with one), a
// sharktank dataset (X.irpa with its rank files, or a folder with one) or a folder as Hugging Face
// repositories have it (or one of its weight files; an archive without blobs counts as one). Gives
// everything that a compiler needs; nothing of the repository is run, only headers and small files
// are read, weights stay mapped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/json.h"
#include "formats/parameter_index.h"
#include "model/model_config.h"

namespace tessera::model {

/// A tokenizer in a GGUF's metadata; the same fields as text::GgufVocabulary, which this layer may
/// not include. Spans point into the ParameterIndex's metadata.
struct GgufTokenizer {
  std::string model;       // tokenizer.ggml.model
  std::string pre;         // tokenizer.ggml.pre, may be empty
  std::string model_name;  // general.name, may be empty.
  std::span<const std::string> tokens;
  std::span<const float> scores;                  // May be empty.
  std::span<const int32_t> token_types;           // May be empty.
  std::span<const std::string> merges;            // May be empty.
  std::span<const uint8_t> precompiled_charsmap;  // "t5"; may be empty.
  int64_t bos_id = -1, eos_id = -1, eot_id = -1, unk_id = -1, pad_id = -1;
  /// Empty where the file does not say; the default depends on model and pre-tokenizer.
  std::optional<bool> add_bos, add_eos, add_space_prefix, remove_extra_whitespaces;
};

/// The text of tokenizer.json.
struct JsonTokenizer {
  std::string json;
};

struct NamedTemplate {
  std::string name;  // "default", "tool_use", ...
  std::string text;  // Jinja
};

/// Sampling parameters that the repository recommends; nothing where it is silent.
struct GenerationDefaults {
  std::optional<bool> do_sample;
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<int64_t> top_k;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  bool operator==(const GenerationDefaults&) const = default;
};

struct SpecialTokens {
  std::optional<int64_t> bos_id;
  std::optional<int64_t> pad_id;
  /// Any of these ends a sequence: merged from config.json, generation_config.json and the
  /// tokenizer's own, or from the GGUF's eos, eot and eom; in that order, each once.
  std::vector<int64_t> eos_ids;
  /// Spelling for templates: tokenizer_config.json, or the vocabulary entry of a GGUF. Empty if
  /// there is none.
  std::string bos_text;
  std::string eos_text;
  bool operator==(const SpecialTokens&) const = default;
};

/// A small file of the repository as it is, for the bundle.
struct RepositoryFile {
  std::string name;
  std::string text;
};

struct ModelSource {
  std::filesystem::path path;
  ModelConfig config;
  formats::ParameterIndex index;
  std::variant<JsonTokenizer, GgufTokenizer> tokenizer;
  /// Empty when the repository has no chat template. The one named "default" comes first.
  std::vector<NamedTemplate> chat_templates;
  SpecialTokens special_tokens;
  GenerationDefaults generation;
  /// config.json, tokenizer_config.json, generation_config.json as they are; empty for a GGUF.
  std::vector<RepositoryFile> files;
  /// The properties of a sharktank dataset; null for other sources.
  std::shared_ptr<const json::Object> dataset_properties;
  bool use_hf_order = false;  // UseHfOrder() was called.
  /// Things a user should hear, one sentence each: a clamp, a key without effect on a default.
  std::vector<std::string> warnings;
};

/// kNotFound for a missing file (named), kUnimplemented for a family or key we do not support
/// (named), kInvalidArgument for a damaged or contradictory file, kResourceExhausted past
/// limits.h.
Result<ModelSource> OpenModel(const std::filesystem::path& path);

/// Takes q and k of a dataset to be in the order of Hugging Face (rotary pairs half a head apart),
/// whatever its property rope.interleave_emb says, and makes the property say so. What sharktank's
/// exporter does for `--use-hf`: datasets exist whose modules were exported with it.
/// kInvalidArgument for a source that is no dataset with GGUF keys.
Status UseHfOrder(ModelSource* source);

}  // namespace tessera::model
