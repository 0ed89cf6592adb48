// SPDX-License-Identifier: Apache-2.0
//
// The results of a batch as its caller wants them: a list in the order of the rows at a path or as
// a file, or OpenAI's two files of lines. Written whole or not at all, and only once: a file that
// is there already was written before a crash.
#pragma once

#include "gateway/batch/batch_folder.h"
#include "gateway/batch/batch_record.h"
#include "gateway/batch/batch_root.h"
#include "gateway/files/file_store.h"

namespace tessera::gateway {

/// kResourceExhausted for a full disk or a quota: it may succeed later.
Status WriteBatchOutput(const BatchRecord& batch, const BatchFolder& folder, const BatchRoot& root,
                        FileStore* files);

/// A row's result as the lists show it.
json::Value ResultJson(const RowResult& result, BatchForm form);

}  // namespace tessera::gateway
