// SPDX-License-Identifier: Apache-2.0
#include "access/local_peer.h"

#include <gtest/gtest.h>

#include <string>

namespace tessera::access {
namespace {

TEST(LocalPeer, LoopbackIsFoundInEveryForm) {
  for (const char* peer : {"127.0.0.1:51234", "127.8.9.10:1", "[::1]:80", "[::ffff:127.0.0.1]:80"})
    EXPECT_TRUE(IsLoopbackPeer(peer)) << peer;
  for (const char* peer : {"", "10.0.0.1:127", "128.0.0.1:80", "[fe80::1]:80",
                           "[::ffff:10.0.0.1]:1", "[::1", "127.0.0.1.example.org:80",
                           "127.example.org:80", "1127.0.0.1:1", "[2001:db8::1]:80", "127.0.0:80"})
    EXPECT_FALSE(IsLoopbackPeer(peer)) << peer;
}

TEST(LocalPeer, WhoeverOnlyPassesOnIsNotLocal) {
  net::Request request;
  request.peer = "127.0.0.1:5000";
  request.headers = {{"Host", "localhost:8000"}};
  EXPECT_TRUE(IsLocalOperator(request));
  for (const char* host : {"127.0.0.1:8000", "[::1]:8000", "localhost"}) {
    request.headers = {{"Host", host}};
    EXPECT_TRUE(IsLocalOperator(request)) << host;
  }
  request.headers = {{"Host", "evil.example.org:8000"}};
  EXPECT_FALSE(IsLocalOperator(request)) << "a name that was made to lead here";
  for (const char* name : {"X-Forwarded-For", "Forwarded", "X-Real-IP", "Via", "Origin"}) {
    request.headers = {{"Host", "localhost"}, {name, "http://localhost"}};
    EXPECT_FALSE(IsLocalOperator(request)) << name;
  }
  request.headers = {{"Host", "localhost"}};
  request.peer = "192.168.1.7:5000";
  EXPECT_FALSE(IsLocalOperator(request));
}

}  // namespace
}  // namespace tessera::access
