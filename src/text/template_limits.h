// SPDX-License-Identifier: Apache-2.0
//
// Limits of chat templates: what a hostile template may cost. The numbers are textkit's
// (textkit/src/template/meter.rs, where their reasons stand); chat_template_test.cc proves each
// at n-1, n and n+1.
#pragma once

#include <cstdint>

namespace tessera::text {

inline constexpr uint64_t kMaxTemplateBytes = 1u << 20;
/// Text emitted, to the result or into captured blocks and macros.
inline constexpr uint64_t kMaxRenderedBytes = 32u << 20;
/// One string or list while rendering.
inline constexpr uint64_t kMaxTemplateValueBytes = 32u << 20;
/// Instructions of one render.
inline constexpr uint64_t kMaxTemplateSteps = 10'000'000;
/// Nesting of lists and dicts that a template builds; those of a request nest at most 90 deep.
inline constexpr uint64_t kMaxTemplateNesting = 100;
/// Items of one range().
inline constexpr uint64_t kMaxTemplateRange = 100'000;

}  // namespace tessera::text
