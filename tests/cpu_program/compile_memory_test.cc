// SPDX-License-Identifier: Apache-2.0
//
// Memory of compiling: it streams, whatever the model's size.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <fstream>

#include "base/file.h"
#include "compiler/compile.h"
#include "formats/open.h"
#include "harness.h"
#include "model/build.h"
#include "support/scale.h"
#include "synthetic_model.h"

namespace tessera::testing {
namespace {

constexpr int64_t kMegabyte = 1 << 20;

/// Resident memory of this process: its own, and what it has mapped of files.
int64_t ResidentBytes() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("VmRSS:")) return std::atoll(line.c_str() + 6) * 1024;
  ADD_FAILURE() << "no field VmRSS";
  return 0;
}

/// A safetensors file of BF16 zeros for the config, as a hole: written at once, read as data.
model::ModelSource MakeHollow(const model::ModelConfig& config, const std::filesystem::path& file) {
  model::ModelSource source;
  const auto graph = model::BuildGraph(config);
  EXPECT_TRUE(graph.has_value()) << graph.error().ToString();
  std::string header = "{";
  uint64_t end = 0;
  for (const graph::Node& node : graph->nodes) {
    if (node.op != graph::Op::kParameter) continue;
    const tensor::Shape& shape = node.type.dims;
    const uint64_t begin = end;
    end += 2 * static_cast<uint64_t>(shape.elements());
    const std::string dims =
        shape.rank() == 1
            ? fmt::format("{}", shape.columns())
            : fmt::format("{},{}", shape.elements() / shape.columns(), shape.columns());
    header +=
        fmt::format(R"({}"{}":{{"dtype":"BF16","shape":[{}],"data_offsets":[{},{}]}})",
                    begin == 0 ? "" : ",", node.As<graph::ParameterAttrs>().name, dims, begin, end);
  }
  header += "}";
  const uint64_t length = header.size();
  const auto writer = FileWriter::Create(file);
  EXPECT_TRUE(writer.has_value());
  EXPECT_TRUE((*writer)->Append(std::as_bytes(std::span(&length, 1))).ok());
  EXPECT_TRUE((*writer)->Append(AsBytes(header)).ok());
  EXPECT_TRUE((*writer)->Resize(sizeof(length) + length + end).ok());
  auto index = formats::Open(file);
  EXPECT_TRUE(index.has_value()) << index.error().ToString();
  source.path = file;
  source.config = config;
  if (index.has_value()) source.index = *std::move(index);
  return source;
}

/// The most resident memory while a model with this vocabulary is compiled, above what was there.
int64_t MemoryOfCompiling(int64_t vocabulary, int64_t parameter_bytes_at_least,
                          const std::string& quantize) {
  model::ModelConfig config = SyntheticConfig();
  config.hidden = 256;
  config.vocab_size = vocabulary;
  const TempDir dir;
  const model::ModelSource source = MakeHollow(config, dir.path() / "model.safetensors");
  compiler::CompileInput input;
  input.source = &source;
  input.name = "hollow";
  input.tokenizer_json = "{}";
  ::malloc_trim(0);
  const int64_t before = ResidentBytes();
  compiler::CompileOptions options;
  options.quantize = quantize;
  int64_t most = before;
  const auto report =
      compiler::Compile(input, options, bundle::Store(dir.path()),
                        [&](const compiler::Progress&) { most = std::max(most, ResidentBytes()); });
  EXPECT_TRUE(report.has_value()) << report.error().ToString();
  if (report.has_value()) {
    EXPECT_GE(static_cast<int64_t>(report->parameter_bytes), parameter_bytes_at_least);
  }
  return most - before;
}

TEST(CompileMemory, DoesNotGrowWithTheModel) {
  if (kUnderSanitizers) GTEST_SKIP() << "ASan keeps freed memory, up to 256 MB of it";
  // Three pieces of a megabyte for each of four threads with the rows they come from, the 32 MB of
  // the source that are hashed and read ahead, and what threads and malloc cost.
  constexpr int64_t kBound = 96 * kMegabyte;
  EXPECT_LE(MemoryOfCompiling(16 << 10, 16 * kMegabyte, "none"), kBound);
  EXPECT_LE(MemoryOfCompiling(256 << 10, 256 * kMegabyte, "none"), kBound);
  EXPECT_LE(MemoryOfCompiling(256 << 10, 64 * kMegabyte, "q4_k"), kBound);
}

}  // namespace
}  // namespace tessera::testing
