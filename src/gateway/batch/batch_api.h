// SPDX-License-Identifier: Apache-2.0
//
// The routes of batches: llm-engine's of both versions with the lists, counts and results that it
// lacks, and OpenAI's.
#pragma once

#include "gateway/api/context.h"
#include "gateway/batch/batches.h"
#include "gateway/models/model_table.h"
#include "net/router.h"

namespace tessera::gateway {

/// What the handlers need; must outlive them.
struct BatchServices {
  const Context* context = nullptr;
  const ModelTable* models = nullptr;
  Batches* batches = nullptr;
};

void AddBatchRoutes(const BatchServices* services, net::Router* router);

}  // namespace tessera::gateway
