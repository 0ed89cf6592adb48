// SPDX-License-Identifier: Apache-2.0
//
// MetricsNames: whose metric names the metrics page has beside ours.
#pragma once

namespace tessera::server {

struct MetricsNames {
  bool vllm = true;
  bool tgi = false;
  bool llamacpp = false;
  bool sglang = false;
};

}  // namespace tessera::server
