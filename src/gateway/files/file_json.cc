// SPDX-License-Identifier: Apache-2.0
#include "gateway/files/file_json.h"

namespace tessera::gateway {

json::Object FileJson(const FileRecord& record) {
  return {{"id", record.id},           {"object", "file"},        {"filename", record.filename},
          {"size", record.bytes},      {"bytes", record.bytes},   {"created_at", record.created_at},
          {"purpose", record.purpose}, {"sha256", record.sha256}, {"status", "processed"}};
}

}  // namespace tessera::gateway
