// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "net/client.h"
#include "net/router.h"
#include "net/server.h"

namespace tessera::net {
TEST(Smoke, AnswersAndDrains) {
  Router router;
  router.Add("GET", "/health",
             [](Request, ResponseWriter w) { (void)w.Send(Response::Text(200, "ok")); });
  auto server = Server::Start({}, router.AsHandler());
  ASSERT_TRUE(server.has_value()) << server.error().ToString();
  HttpClient client({.port = (*server)->port()});
  for (int i = 0; i < 3; ++i) {
    auto r = client.Call({.target = "/health"});
    ASSERT_TRUE(r.has_value()) << r.error().ToString();
    EXPECT_EQ(r->body, "ok");
  }
  EXPECT_EQ((*server)->stats().connections_accepted, 1u);
  EXPECT_TRUE((*server)->Drain(std::chrono::seconds(2)).ok());
}
}  // namespace tessera::net
