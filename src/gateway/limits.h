// SPDX-License-Identifier: Apache-2.0
//
// Bounds of what the gateway takes from outside. A value of n admits n and refuses n + 1.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace tessera::gateway {

// Fields of an endpoint.
inline constexpr size_t kNameBytesMax = 63;  // A DNS label: it becomes a host name in a cluster.
inline constexpr size_t kTextBytesMax = 4096;
inline constexpr size_t kChatTemplateBytesMax = 10000;
inline constexpr size_t kLabelsMax = 64;
inline constexpr size_t kLabelBytesMax = 63;
inline constexpr size_t kMetadataBytesMax = 64 << 10;
inline constexpr int64_t kWorkersMax = 250;
inline constexpr int64_t kPerWorkerMax = 1 << 20;
inline constexpr int64_t kShardsMax = 64;
inline constexpr int64_t kTimeoutSecondsMax = 43200;

// Requests.
inline constexpr uint64_t kSpecBytesMax = 1u << 20;      // Body of create and update.
inline constexpr uint64_t kRequestBytesMax = 64u << 20;  // Body of a call that generates.
inline constexpr uint64_t kAnswerBytesMax = 256u << 20;  // Of a worker, when it is held whole.
inline constexpr uint64_t kUnsentBytesMax = 1u << 20;    // Of a stream; then its worker waits.
inline constexpr size_t kUserBytesMax = 256;
inline constexpr int64_t kPageMax = 10000;  // `limit` of lists.

// Files.
inline constexpr size_t kMultipartPreambleBytesMax = 4096;
inline constexpr size_t kMultipartPartsMax = 32;
inline constexpr size_t kPartHeadBytesMax = 8192;
inline constexpr size_t kFormFieldBytesMax = 4096;       // Of a part that is no file.
inline constexpr size_t kFormFramingBytesMax = 1 << 20;  // Of a form beside its file.
inline constexpr size_t kFileNameBytesMax = 255;
inline constexpr size_t kFilePurposeBytesMax = 64;
inline constexpr uint64_t kFileTextBytesMax = 64u << 20;  // Of `content` as a JSON text.

// Downloads of models.
inline constexpr size_t kModelFilesMax = 1000;
inline constexpr int64_t kDownloadSeconds = 3600;  // An address holds.

// Batches.
inline constexpr int64_t kBatchRowsMax = 100000;
inline constexpr uint64_t kBatchInputBytesMax = 64u << 20;
inline constexpr uint64_t kBatchRowsBytesMax = 512u << 20;  // As they are kept, all of them.
inline constexpr uint64_t kBatchRowBytesMax = 4u << 20;     // A line of an input.
inline constexpr size_t kBatchCustomIdBytesMax = 256;
inline constexpr uint64_t kBatchAnswerBytesMax = 16u << 20;  // Of a worker, to one row.
inline constexpr int64_t kBatchesOpenMax = 1000;             // Of one owner, not yet over.
inline constexpr int64_t kBatchParallelismMax = 64;
inline constexpr int64_t kBatchRuntimeSecondsMax = 172800;
inline constexpr size_t kBatchMetadataMax = 16;
inline constexpr int64_t kBatchKeptSeconds = 30 * 86400;  // After its end; then its results go.

inline constexpr uint64_t kAliasFileBytesMax = 4u << 20;  // models.toml.

// The store.
inline constexpr int64_t kEndpointsMax = 100000;
inline constexpr int64_t kEventsPerEndpointMax = 1000;  // Older ones go.

}  // namespace tessera::gateway
