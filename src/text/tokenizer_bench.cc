// SPDX-License-Identifier: Apache-2.0
//
// Speed of encoding, decoding, streaming and loading, one thread. Bytes a second are those of the
// text. Build the target text_bench; --benchmark_filter=llama3_1 picks a family.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "support/fixtures.h"
#include "text/test_vocabularies.h"
#include "text/tokenizer.h"
#include "text/tokenizer_table.h"

namespace tessera::text {
namespace {

constexpr size_t kTextBytes = 1 << 20;

/// Documents with prose, tables and code: varied enough that the crate's cache of words does not
/// know them all.
std::string SomeText(size_t bytes) {
  static const std::string documents = [] {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(testing::Shared("spec"))) {
      if (entry.path().extension() == ".md") paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    std::string text;
    for (const auto& path : paths) text += testing::ReadAll(path);
    return text;
  }();
  TESSERA_CHECK(!documents.empty());
  std::string text;
  while (text.size() < bytes) text += documents;
  text.resize(bytes);
  while (!text.empty() && (text.back() & 0x80) != 0) text.pop_back();  // No cut character.
  return text;
}

std::shared_ptr<const Tokenizer> Load(const std::string& name) {
  auto tokenizer = name.ends_with(".gguf") ? GgufTokenizer(name) : NpmTokenizer(name);
  TESSERA_CHECK(tokenizer != nullptr);
  return tokenizer;
}

void Encode(benchmark::State& state, const std::string& name) {
  const auto tokenizer = Load(name);
  const std::string text = SomeText(kTextBytes);
  for (auto _ : state) {
    auto ids = tokenizer->Encode(text, {});
    TESSERA_CHECK(ids.has_value());
    benchmark::DoNotOptimize(ids);
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
}

void Decode(benchmark::State& state, const std::string& name) {
  const auto tokenizer = Load(name);
  const std::string text = SomeText(kTextBytes);
  const auto ids = tokenizer->Encode(text, {}).value();
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer->Decode(ids, true));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
}

void Stream(benchmark::State& state, const std::string& name) {
  const auto tokenizer = Load(name);
  const std::string text = SomeText(kTextBytes);
  const auto ids = tokenizer->Encode(text, {}).value();
  for (auto _ : state) {
    const auto stream = Detokenizer::Make(tokenizer, true);
    for (const TokenId id : ids) benchmark::DoNotOptimize(stream->Push(id));
    benchmark::DoNotOptimize(stream->Flush());
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * ids.size()));
}

void LoadJson(benchmark::State& state, const std::string& name) {
  const std::string json = NpmTokenizerJson(name);
  for (auto _ : state) benchmark::DoNotOptimize(Tokenizer::FromJson(json));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * json.size()));
}

std::string Table(const std::string& name) {
  auto table = MakeTokenizerTable(*Load(name));
  TESSERA_CHECK(table.has_value());
  return *std::move(table);
}

/// From a file in the page cache, mapping included.
void LoadTable(benchmark::State& state, const std::string& name) {
  const testing::TempDir dir;
  const auto path = dir.path() / "tokenizer.table";
  const std::string table = Table(name);
  TESSERA_CHECK(WriteFileAtomic(path, table).ok());
  for (auto _ : state) benchmark::DoNotOptimize(OpenTokenizerTable(path));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * table.size()));
}

void LoadGguf(benchmark::State& state, const std::string& name) {
  const GgufTokenizerMetadata metadata = ReadGgufTokenizer(testing::TestData(name));
  for (auto _ : state) benchmark::DoNotOptimize(Tokenizer::FromGguf(metadata.vocabulary()));
}

void EncodeStored(benchmark::State& state, const std::string& name) {
  const auto tokenizer = ReadTokenizerTable(Table(name)).value();
  const std::string text = SomeText(kTextBytes);
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer->Encode(text, {}));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
}

}  // namespace
}  // namespace tessera::text

int main(int argc, char** argv) {
  using tessera::text::Decode;
  using tessera::text::Encode;
  using tessera::text::EncodeStored;
  using tessera::text::LoadGguf;
  using tessera::text::LoadJson;
  using tessera::text::LoadTable;
  using tessera::text::Stream;
  auto names = tessera::text::NpmFamilies();
  for (const std::string& name : names) {
    benchmark::RegisterBenchmark(("load/" + name).c_str(), LoadJson, name);
  }
  for (const std::string name :
       {"SmolLM2-135M-Instruct.Q4_1.gguf", "llama_cpp_models/ggml-vocab-llama-bpe.gguf"}) {
    benchmark::RegisterBenchmark(("load/" + name).c_str(), LoadGguf, name);
    names.push_back(name);
  }
  for (const std::string& name : names) {
    benchmark::RegisterBenchmark(("load_stored/" + name).c_str(), LoadTable, name);
    benchmark::RegisterBenchmark(("encode_stored/" + name).c_str(), EncodeStored, name);
  }
  names.emplace_back("llama_cpp_models/ggml-vocab-llama-spm.gguf");
  for (const std::string& name : names) {
    benchmark::RegisterBenchmark(("encode/" + name).c_str(), Encode, name);
    benchmark::RegisterBenchmark(("decode/" + name).c_str(), Decode, name);
    benchmark::RegisterBenchmark(("stream/" + name).c_str(), Stream, name);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
