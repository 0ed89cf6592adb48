// SPDX-License-Identifier: Apache-2.0
//
// The routes of files: llm-engine's and OpenAI's, which have the same paths. Uploads arrive through
// a body receiver (upload.h), all else through the router.
#pragma once

#include <string>

#include "gateway/api/context.h"
#include "gateway/files/file_sender.h"
#include "gateway/files/file_store.h"
#include "net/body_receiver.h"
#include "net/router.h"

namespace tessera::gateway {

/// What the handlers need; must outlive them.
struct FileServices {
  std::unique_ptr<FileStore> store;
  std::unique_ptr<FileSender> sender;
};

void AddFileRoutes(FileServices* files, net::Router* router);

/// A receiver for uploads of forms; 401 for one by nobody. Nothing for all other requests.
std::expected<net::BodyPlan, net::HttpError> PlanUpload(FileServices* files,
                                                        const net::Request& head);

}  // namespace tessera::gateway
