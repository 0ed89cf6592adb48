// SPDX-License-Identifier: Apache-2.0
#include "server/request_registry.h"

#include <gtest/gtest.h>

namespace tessera::server {
namespace {

TEST(RequestRegistry, CancelsByEveryNameUntilRemoved) {
  RequestRegistry registry;
  int calls = 0;
  const auto key = registry.Add({"cmpl-1", "mine"}, 0, [&] { ++calls; });
  EXPECT_EQ(registry.Cancel("cmpl-1", {}), 1u);
  EXPECT_EQ(registry.Cancel("mine", {}), 1u);
  EXPECT_EQ(registry.Cancel("cmpl", {}), 0u);
  registry.Remove(key);
  registry.Remove(key);
  EXPECT_EQ(registry.Cancel("mine", {}), 0u);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(registry.size(), 0u);
}

TEST(RequestRegistry, RequestsOfOneNameEndTogetherAndLeaveSingly) {
  RequestRegistry registry;
  std::string calls;
  const auto a = registry.Add({"shared", "a"}, 0, [&] { calls += "a"; });
  registry.Add({"shared", "b"}, 0, [&] { calls += "b"; });
  EXPECT_EQ(registry.Cancel("shared", {}), 2u);
  registry.Remove(a);
  EXPECT_EQ(registry.Cancel("shared", {}), 1u);
  EXPECT_EQ(calls, "abb");
}

TEST(RequestRegistry, OnlyItsOwnerAndAnAdministratorCanEndARequest) {
  const auto caller = [](engine::ClientId client, Scope scope) {
    ApiKey key;
    key.scopes = access::ScopeBit(scope);
    return Caller{std::make_shared<const ApiKey>(std::move(key)),
                  std::make_shared<KeyUsage>(client, Clock::Real())};
  };
  RequestRegistry registry;
  std::string calls;
  registry.Add({"shared"}, 1, [&] { calls += "a"; });
  registry.Add({"shared"}, 2, [&] { calls += "b"; });
  EXPECT_EQ(registry.Cancel("shared", caller(3, Scope::kInference)), 0u);
  EXPECT_EQ(registry.Cancel("shared", {}), 0u);
  EXPECT_EQ(registry.Cancel("shared", caller(2, Scope::kInference)), 1u);
  EXPECT_EQ(registry.Cancel("shared", caller(3, Scope::kAdmin)), 2u);
  EXPECT_EQ(calls, "bab");
}

TEST(RequestRegistry, ACallMayRemoveItsOwnEntry) {
  RequestRegistry registry;
  RequestRegistry::Key key = 0;
  key = registry.Add({"x"}, 0, [&] { registry.Remove(key); });
  EXPECT_EQ(registry.Cancel("x", {}), 1u);
  EXPECT_EQ(registry.Cancel("x", {}), 0u);
}

}  // namespace
}  // namespace tessera::server
