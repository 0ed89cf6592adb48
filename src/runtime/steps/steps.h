// SPDX-License-Identifier: Apache-2.0
//
// The fused steps. Each RunOp runs on every worker at once and computes that worker's share of the
// columns, heads or rows; the executor puts a barrier after it.
#pragma once

#include "bundle/program.h"
#include "runtime/executor.h"

namespace tessera::runtime {

void RunOp(Executor& ex, const bundle::EmbedStep& step, Worker* worker);
void RunOp(Executor& ex, const bundle::QkvStep& step, Worker* worker);
void RunOp(Executor& ex, const bundle::AttentionStep& step, Worker* worker);
void RunOp(Executor& ex, const bundle::ProjectStep& step, Worker* worker);
void RunOp(Executor& ex, const bundle::GatedStep& step, Worker* worker);
void RunOp(Executor& ex, const bundle::HeadStep& step, Worker* worker);

}  // namespace tessera::runtime
