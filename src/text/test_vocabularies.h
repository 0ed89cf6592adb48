// SPDX-License-Identifier: Apache-2.0
//
// Tokenizers of the reference fixtures, for tests of text/. Reads GGUF metadata with a reader of
// its own (text/ does not know formats/), just enough for the vocabularies that we test with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace tessera::text {

/// The tokenizer metadata of a GGUF file; vocabulary() views it.
struct GgufTokenizerMetadata {
  std::map<std::string, std::string> texts;
  std::map<std::string, int64_t> numbers;  // Integers and booleans.
  std::map<std::string, std::vector<std::string>> text_arrays;
  std::vector<float> scores;
  std::vector<int32_t> token_types;
  std::vector<uint8_t> charsmap;

  GgufVocabulary vocabulary() const;
};

/// Fails the test when the file is not readable GGUF.
GgufTokenizerMetadata ReadGgufTokenizer(const std::filesystem::path& path);

/// tokenizer.json of a family in fixtures/tokenizers.json ("llama3_1").
std::string NpmTokenizerJson(std::string_view family);
/// As FromJson(NpmTokenizerJson()), kept for the whole test run since loading takes a while.
std::shared_ptr<const Tokenizer> NpmTokenizer(std::string_view family);
/// "SmolLM2-135M-Instruct.Q4_1.gguf", "llama_cpp_models/ggml-vocab-gpt-2.gguf": under TestData().
std::shared_ptr<const Tokenizer> GgufTokenizer(std::string_view file);

/// The families that have a fixture, and the names of the GGUF vocabularies that have one; a small
/// one of each kind under sanitizers.
std::vector<std::string> NpmFamilies();
std::vector<std::string> GgufVocabularyNames();

}  // namespace tessera::text
