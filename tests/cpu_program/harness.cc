// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace tessera::testing {
namespace {

Reference::Row ReadRow(const json::Object& object) {
  Reference::Row row;
  for (const json::Value& pair : object.at("top").as_array())
    row.top.emplace_back(static_cast<int32_t>(pair.as_array()[0].as_int64()),
                         pair.as_array()[1].to_number<double>());
  row.logsumexp = object.at("logsumexp").to_number<double>();
  return row;
}

Reference ReadReference(const json::Object& object) {
  Reference reference;
  reference.id = std::string(object.at("id").as_string());
  for (const json::Value& id : object.at("ids").as_array())
    reference.ids.push_back(static_cast<int32_t>(id.as_int64()));
  reference.last = ReadRow(object.at("last").as_object());
  if (const json::Value* positions = json::Find(object, "positions"))
    for (const json::Value& row : positions->as_array())
      reference.positions.push_back(ReadRow(row.as_object()));
  if (const json::Value* argmax = json::Find(object, "argmax"))
    for (const json::Value& id : argmax->as_array())
      reference.argmax.push_back(static_cast<int32_t>(id.as_int64()));
  if (const json::Value* nll = json::Find(object, "mean_nll"))
    reference.mean_nll = nll->to_number<double>();
  if (const json::Value* greedy = json::Find(object, "greedy"))
    for (const json::Value& step : greedy->as_array())
      reference.greedy.push_back({static_cast<int32_t>(step.as_object().at("id").as_int64()),
                                  step.as_object().at("margin").to_number<double>()});
  return reference;
}

}  // namespace

std::filesystem::path TinyLlama(std::string_view form) {
  return Shared("fixtures/tiny_llama") / form;
}

std::filesystem::path SmolLm2() {
  return TestData("SmolLM2-135M-Instruct.Q4_1.gguf");
}

compiler::CompileReport MustCompile(const std::filesystem::path& model,
                                    const std::filesystem::path& cache,
                                    const compiler::CompileOptions& options) {
  const auto source = model::OpenModel(model);
  EXPECT_TRUE(source.has_value()) << source.error().ToString();
  if (!source.has_value()) return {};
  compiler::CompileInput input;
  input.source = &*source;
  input.name = model.filename().string();
  input.tokenizer_json = "{}";
  auto report = compiler::Compile(input, options, bundle::Store(cache));
  EXPECT_TRUE(report.has_value()) << report.error().ToString();
  return report.has_value() ? *std::move(report) : compiler::CompileReport();
}

std::filesystem::path BundleOf(const std::filesystem::path& model) {
  static TempDir* const cache = new TempDir();  // Removed at exit, below.
  static std::map<std::filesystem::path, std::filesystem::path> bundles;
  static const int registered = std::atexit([] { delete cache; });
  EXPECT_EQ(registered, 0);
  const auto found = bundles.find(model);
  if (found != bundles.end()) return found->second;
  return bundles[model] = MustCompile(model, cache->path()).bundle;
}

std::unique_ptr<runtime::Session> MustLoad(const std::filesystem::path& bundle,
                                           const runtime::LoadOptions& options) {
  auto session = runtime::LoadSession(bundle, options);
  EXPECT_TRUE(session.has_value()) << session.error().ToString();
  return session.has_value() ? *std::move(session) : nullptr;
}

Sequence::Sequence(runtime::Session* session, runtime::PageId first_page, int64_t pages)
    : session_(session), pages_(static_cast<size_t>(pages)) {
  std::iota(pages_.begin(), pages_.end(), first_page);
}

Sequence::Sequence(runtime::Session* session, std::vector<runtime::PageId> pages)
    : session_(session), pages_(std::move(pages)) {}

runtime::Chunk Sequence::Next(std::span<const int32_t> tokens, runtime::Chunk::Logits logits) {
  const runtime::Chunk chunk{tokens, position_, pages_, logits};
  position_ += std::ssize(tokens);
  return chunk;
}

Logits Sequence::Feed(std::span<const int32_t> tokens, int64_t chunk) {
  Logits all;
  while (!tokens.empty()) {
    const size_t rows = std::min(static_cast<size_t>(chunk), tokens.size());
    const runtime::Chunk next = Next(tokens.first(rows));
    const auto logits = session_->Step({&next, 1});
    EXPECT_TRUE(logits.has_value()) << logits.error().ToString();
    if (!logits.has_value()) return {};
    all.insert(all.end(), logits->begin(), logits->end());
    tokens = tokens.subspan(rows);
  }
  return all;
}

Logits RunAll(runtime::Session* session, std::span<const int32_t> tokens, int64_t chunk) {
  const int64_t page = session->shape().page_tokens;
  Sequence sequence(session, 0, (std::ssize(tokens) + page - 1) / page);
  return sequence.Feed(tokens, chunk);
}

std::vector<Reference> ReadReferences(const std::filesystem::path& file) {
  std::vector<Reference> references;
  for (const json::Value& line : ReadJsonLines(file))
    references.push_back(ReadReference(line.as_object()));
  EXPECT_FALSE(references.empty());
  return references;
}

int32_t ArgMax(std::span<const float> row) {
  return static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

double MeanNll(const Logits& logits, std::span<const int32_t> ids, int64_t vocabulary) {
  if (ids.size() < 2) return 0;
  double sum = 0;
  for (size_t i = 0; i + 1 < ids.size(); ++i) {
    const std::span<const float> row(logits.data() + static_cast<int64_t>(i) * vocabulary,
                                     static_cast<size_t>(vocabulary));
    const double top = *std::max_element(row.begin(), row.end());
    double total = 0;
    for (const float logit : row) total += std::exp(logit - top);
    sum += std::log(total) + top - static_cast<double>(row[static_cast<size_t>(ids[i + 1])]);
  }
  return sum / static_cast<double>(ids.size() - 1);
}

}  // namespace tessera::testing
