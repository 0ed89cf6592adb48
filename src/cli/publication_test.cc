// SPDX-License-Identifier: Apache-2.0
#include "cli/publication.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <future>

namespace tessera::cli {
namespace {

TEST(PublicationTest, RunsBesideItsOwnerWhoGetsItsErrorAsOftenAsAsked) {
  std::promise<void> go;
  auto publication = Publication::Begin([&] {
    go.get_future().wait();
    return DataLoss("the disk is gone");
  });
  ASSERT_TRUE(publication.has_value());
  EXPECT_FALSE((*publication)->HasFailed());
  go.set_value();
  EXPECT_EQ((*publication)->Wait().message(), "the disk is gone");
  EXPECT_EQ((*publication)->Wait().message(), "the disk is gone");
  EXPECT_TRUE((*publication)->HasFailed());
}

TEST(PublicationTest, IsWaitedForByItsEnd) {
  bool done = false;
  {
    auto publication = Publication::Begin([&] {
      done = true;
      return Status();
    });
    ASSERT_TRUE(publication.has_value());
  }
  EXPECT_TRUE(done);
}

TEST(PublicationTest, GivesWayAloneAndWithWhatItStarts) {
  const auto nice = [] { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); };
  const int mine = nice();
  int its = 0, of_its_thread = 0;
  auto publication = Publication::Begin([&] {
    Publication::GiveWay();
    its = nice();
    auto started = Publication::Begin([&] {
      of_its_thread = nice();
      return Status();
    });
    return started.has_value() ? (*started)->Wait() : started.error();
  });
  ASSERT_TRUE(publication.has_value());
  ASSERT_TRUE((*publication)->Wait().ok());
  EXPECT_EQ(its, 19);
  EXPECT_EQ(of_its_thread, 19);
  EXPECT_EQ(nice(), mine);
}

}  // namespace
}  // namespace tessera::cli
