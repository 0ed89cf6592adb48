// SPDX-License-Identifier: Apache-2.0
//
// Bounds of the HTTP dialects, each tested at n and n + 1. Bytes and connections are net/limits.h,
// the queue and sampling lists engine/limits.h, ranges of request fields openai/schema.cc,
// keys access/limits.h of the layer below.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace tessera::server {

inline constexpr uint32_t kJsonDepthMax = 64;
inline constexpr uint64_t kJsonKeysMax = 4096;    // Members of one object of a request.
inline constexpr size_t kMessagesMax = 4096;      // Of one chat.
inline constexpr size_t kContentPartsMax = 1024;  // Of one message.
inline constexpr size_t kToolsMax = 128;          // Of one chat; as the hosted API.
inline constexpr size_t kRequestTemplatesMax =
    16;                                     // Kept; each of text::kMaxTemplateBytes at most.
inline constexpr size_t kPromptsMax = 256;  // Of one completion request.
inline constexpr size_t kChoicesMax = 256;  // Prompts times n.
inline constexpr int64_t kChoicesPerPromptMax = 128;
inline constexpr size_t kDryBreakersMax = 32;
inline constexpr size_t kDryBreakerBytesMax = 64;
inline constexpr size_t kWarningsMax = 16;        // Listed one by one; the rest as a number.
inline constexpr size_t kWarningsHeldMax = 1024;  // Of one request; more leave no trace.

// Trace context: beyond these a new trace begins, or the state is dropped.
inline constexpr size_t kTraceparentBytesMax = 512;  // Versions to come may be longer than 55.
inline constexpr size_t kTracestateBytesMax = 512;
inline constexpr size_t kTracestateMembersMax = 32;
/// A finished answer is not held against its form when that could not begin for so long.
inline constexpr Duration kFormWaitMax = std::chrono::seconds(2);
/// What compiling all schemas of one request may take; those left count as too expensive.
inline constexpr Duration kSchemasTimeMax = std::chrono::seconds(2);
/// At the end of a drain the collector gets so long for what is left.
inline constexpr Duration kTraceFlushPatience = std::chrono::seconds(5);

/// A step of the largest batch on the slowest machine we know takes seconds; one of minutes hangs.
inline constexpr Duration kStuckStep = std::chrono::minutes(2);
/// /readyz believes a step that is no older, and waits so long for one.
inline constexpr Duration kReadyStepAge = std::chrono::seconds(30);
inline constexpr Duration kReadyPatience = std::chrono::seconds(10);
/// The metrics page believes a reading of the process's memory that is no older.
inline constexpr Duration kMemoryReadingAge = std::chrono::seconds(1);
/// A stream that was silent for so long gets a comment.
inline constexpr Duration kPingInterval = std::chrono::seconds(10);

// Streams that can be gone on with after their connection broke. Together they hold at most
// kResumeStreamsMax * kResumeBytesMax.
inline constexpr size_t kResumeStreamsMax = 64;     // 429.
inline constexpr size_t kResumeBytesMax = 1 << 20;  // Of one; the oldest events are given up.
/// How long a client may be away before its generation ends, and a complete answer is kept.
inline constexpr Duration kResumeGrace = std::chrono::seconds(60);

}  // namespace tessera::server
