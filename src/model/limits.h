// SPDX-License-Identifier: Apache-2.0
//
// Limits of the small files of a repository and of the numbers in them.
#pragma once

#include <cstdint>

namespace tessera::model {

inline constexpr uint64_t kMaxConfigBytes = 4u << 20;  // config.json, generation_config.json
inline constexpr uint64_t kMaxTokenizerConfigBytes = 16u << 20;
inline constexpr uint64_t kMaxTokenizerBytes =
    256u << 20;  // tokenizer.json; the largest known has 33 MB
/// One template as a file or string; text/template_limits.h takes no larger one (cli_test
/// compares).
inline constexpr uint64_t kMaxTemplateFileBytes = 1u << 20;
inline constexpr uint64_t kMaxTemplates = 64;
inline constexpr uint64_t kMaxEosIds = 256;

inline constexpr int64_t kMaxLayers = 1024;
inline constexpr int64_t kMaxHeads = 4096;
inline constexpr int64_t kMaxWidth = 1 << 24;  // hidden, intermediate, head_dim
inline constexpr int64_t kMaxVocabulary = 1 << 24;
inline constexpr int64_t kMaxContext = int64_t{1} << 31;

}  // namespace tessera::model
