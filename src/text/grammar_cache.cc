// SPDX-License-Identifier: Apache-2.0
#include "text/grammar_cache.h"

#include <utility>

namespace tessera::text {

GrammarCache::GrammarCache(std::shared_ptr<const Tokenizer> tokenizer, std::vector<TokenId> eos)
    : GrammarCache(std::move(tokenizer), std::move(eos), Limits{}) {}

GrammarCache::GrammarCache(std::shared_ptr<const Tokenizer> tokenizer, std::vector<TokenId> eos,
                           Limits limits)
    : tokenizer_(std::move(tokenizer)), eos_(std::move(eos)), limits_(limits) {}

Result<std::shared_ptr<const Grammar>> GrammarCache::Get(GrammarKind kind,
                                                         std::string_view source) {
  std::string key(1, static_cast<char>('0' + static_cast<int>(kind)));
  key += source;
  if (auto known = Find(key)) return known;
  TESSERA_ASSIGN_OR_RETURN(auto vocabulary, Vocabulary());
  const TimePoint begin = Clock::Real().Now();
  auto compiled = Grammar::Compile(std::move(vocabulary), kind, source);
  CountCompile(Clock::Real().Now() - begin);
  if (!compiled.has_value()) {
    const std::lock_guard lock(mutex_);
    ++counters_.refused;
    return compiled;
  }
  Store(std::move(key), *compiled);
  return compiled;
}

std::span<const double> GrammarCache::CompileBounds() {
  static constexpr double kBounds[] = {0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02,
                                       0.05,   0.1,    0.2,    0.5,   1,     2,     5,    10};
  return kBounds;
}

void GrammarCache::CountCompile(Duration duration) {
  const std::lock_guard lock(mutex_);
  counters_.compile_seconds.Observe(Seconds(duration));
}

Status GrammarCache::Warm() {
  return StatusOf(Vocabulary());
}

GrammarCache::Counters GrammarCache::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

Result<std::shared_ptr<const ConstraintVocabulary>> GrammarCache::Vocabulary() {
  const std::lock_guard lock(vocabulary_mutex_);
  if (vocabulary_ == nullptr) {
    TESSERA_ASSIGN_OR_RETURN(vocabulary_, ConstraintVocabulary::Make(*tokenizer_, eos_));
  }
  return vocabulary_;
}

std::shared_ptr<const Grammar> GrammarCache::Find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  ++counters_.hits;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->grammar;
}

void GrammarCache::Store(std::string key, std::shared_ptr<const Grammar> grammar) {
  const std::lock_guard lock(mutex_);
  ++counters_.compiled;
  if (by_key_.contains(key)) return;  // Another request was faster.
  counters_.source_bytes += key.size();
  entries_.push_front({std::move(key), std::move(grammar)});
  by_key_.emplace(entries_.front().key, entries_.begin());
  while (entries_.size() > limits_.grammars || counters_.source_bytes > limits_.source_bytes) {
    by_key_.erase(entries_.back().key);
    counters_.source_bytes -= entries_.back().key.size();
    entries_.pop_back();
  }
  counters_.grammars = entries_.size();
}

}  // namespace tessera::text
