// SPDX-License-Identifier: Apache-2.0
#include "hub/nearest.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "hub/limits.h"
#include "hub/repository_cache.h"

namespace tessera::hub {
namespace {

/// Of letters that may be wrong, one in so many.
constexpr size_t kLettersPerSlip = 5;
/// Shorter ones begin too many names.
constexpr size_t kFewestOfBeginning = 4;

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return lower;
}

/// Levenshtein's distance, by rows (Wagner and Fischer, 1974).
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string_view RepositoryPart(std::string_view name) {
  return name.substr(name.find('/') + 1);
}

/// Slips between the two; nothing when they are too many.
std::optional<size_t> Slips(const std::string& wanted, const std::string& name) {
  std::optional<size_t> fewest;
  const auto consider = [&](std::string_view a, std::string_view b) {
    const size_t slips = Distance(a, b);
    if (slips * kLettersPerSlip <= a.size() && slips < fewest.value_or(slips + 1)) fewest = slips;
  };
  consider(wanted, name);
  consider(RepositoryPart(wanted), RepositoryPart(name));
  const std::string_view part = RepositoryPart(wanted);
  if (!fewest && part.size() >= kFewestOfBeginning && RepositoryPart(name).starts_with(part))
    fewest = wanted.size();  // Farther than any slip.
  return fewest;
}

}  // namespace

std::optional<std::string> NearestName(std::string_view wanted,
                                       std::span<const std::string> names) {
  if (wanted.empty() || wanted.size() > 2 * kMaxNamePartBytes + 1) return std::nullopt;
  const std::string lower = Lower(wanted);
  std::optional<size_t> fewest;
  const std::string* nearest = nullptr;
  for (const std::string& name : names) {
    if (name == wanted) continue;
    const auto slips = Slips(lower, Lower(name));
    if (!slips || *slips >= fewest.value_or(*slips + 1)) continue;
    fewest = slips;
    nearest = &name;
  }
  return nearest != nullptr ? std::optional(*nearest) : std::nullopt;
}

std::optional<std::string> NearestInCache(std::string_view wanted,
                                          const std::filesystem::path& cache) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator it(cache, error);
  for (const std::filesystem::directory_iterator end; !error && it != end; it.increment(error))
    if (auto name = RepositoryOfFolder(it->path().filename().string()))
      if (names.size() < kMaxListedFiles) names.push_back(*std::move(name));
  std::sort(names.begin(), names.end());
  return NearestName(wanted, names);
}

}  // namespace tessera::hub
