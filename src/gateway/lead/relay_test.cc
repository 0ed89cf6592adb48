// SPDX-License-Identifier: Apache-2.0
#include "gateway/lead/relay.h"

#include <gtest/gtest.h>

namespace tessera::gateway {
namespace {

TEST(ReadAddress, HostsInDigitsWithPorts) {
  EXPECT_EQ(*ReadAddress("10.0.0.5:5000"), (net::UpstreamAddress{"10.0.0.5", 5000}));
  EXPECT_EQ(*ReadAddress("[::1]:65535"), (net::UpstreamAddress{"::1", 65535}));
  for (const char* wrong : {"", ":", ":5000", "10.0.0.5", "10.0.0.5:", "10.0.0.5:0", "a:65536",
                            "a:-1", "a:50x", "a: 50"})
    EXPECT_FALSE(ReadAddress(wrong).has_value()) << wrong;
}

}  // namespace
}  // namespace tessera::gateway
