// SPDX-License-Identifier: Apache-2.0
#include "server/otlp/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tessera::server::otlp {
namespace {

using ::testing::HasSubstr;

TEST(Endpoint, IsABaseOrTheWholePath) {
  const auto name = [](std::string_view url) {
    const auto endpoint = ParseEndpoint(url);
    EXPECT_TRUE(endpoint.has_value()) << url;
    return endpoint.has_value() ? endpoint->name : "";
  };
  EXPECT_EQ(name("http://localhost:4318"), "http://localhost:4318/v1/traces");
  EXPECT_EQ(name("http://localhost:4318/"), "http://localhost:4318/v1/traces");
  EXPECT_EQ(name("http://localhost:4318/v1/traces"), "http://localhost:4318/v1/traces");
  EXPECT_EQ(name("http://host/otlp"), "http://host:80/otlp/v1/traces");
  EXPECT_EQ(name("http://[::1]:65535"), "http://[::1]:65535/v1/traces");
  EXPECT_EQ(ParseEndpoint("http://[::1]:4318")->host, "::1");
  EXPECT_EQ(ParseEndpoint("http://[::1]")->port, 80);
  EXPECT_EQ(ParseEndpoint("http://10.0.0.1:4318")->host, "10.0.0.1");
}

TEST(Endpoint, AnythingElseIsRefusedWithTheReason) {
  const auto why = [](std::string_view url) {
    const auto endpoint = ParseEndpoint(url);
    EXPECT_FALSE(endpoint.has_value()) << url;
    return endpoint.has_value() ? std::string() : endpoint.error().ToString();
  };
  EXPECT_THAT(why("https://host:4318"), HasSubstr("TLS"));
  for (const char* scheme : {"", "localhost:4318", "grpc://host", "HTTP:/host"})
    EXPECT_THAT(why(scheme), HasSubstr("http://"));
  for (const char* port :
       {"http://h:", "http://h:0", "http://h:65536", "http://h:1x", "http://h:-1"})
    EXPECT_THAT(why(port), HasSubstr("port"));
  for (const char* host : {"http://", "http://:80", "http:///x", "http://[]", "http://[::1]x"})
    EXPECT_THAT(why(host), HasSubstr("host")) << host;
  EXPECT_THAT(why("http://[::1:80"), HasSubstr("bracket"));
  for (const char* odd :
       {"http://u@h", "http://h/?x=1", "http://h/#x", "http://h/a b", "http://h/\n"})
    EXPECT_THAT(why(odd), HasSubstr("query"));
}

}  // namespace
}  // namespace tessera::server::otlp
