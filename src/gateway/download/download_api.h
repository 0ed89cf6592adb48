// SPDX-License-Identifier: Apache-2.0
//
// Downloads of a model's files: llm-engine's {urls: {file: address}}, with addresses of this
// gateway that need no login and expire.
#pragma once

#include <filesystem>

#include "gateway/api/context.h"
#include "gateway/download/url_signer.h"
#include "gateway/files/file_sender.h"
#include "gateway/models/model_table.h"
#include "net/router.h"

namespace tessera::gateway {

/// What the handlers need; must outlive them.
struct DownloadServices {
  const Context* context = nullptr;
  const ModelTable* models = nullptr;
  FileSender* sender = nullptr;
  std::filesystem::path hub_cache{};
  bool has_tls = false;
  UrlSigner signer{};
};

void AddDownloadRoutes(const DownloadServices* services, net::Router* router);

}  // namespace tessera::gateway
