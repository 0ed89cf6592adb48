// SPDX-License-Identifier: Apache-2.0
#include "server/task_thread.h"

#include <gtest/gtest.h>

#include <future>
#include <vector>

namespace tessera::server {
namespace {

TEST(TaskThread, RunsDeferredTasksInOrderOnceItIsWoken) {
  std::vector<int> ran;
  std::promise<void> all;
  {
    auto tasks = TaskThread::Start();
    ASSERT_TRUE(tasks.has_value());
    (*tasks)->Defer([&] { ran.push_back(1); });
    (*tasks)->Defer([&] { ran.push_back(2); });
    (*tasks)->Post([&] { ran.push_back(3); });
    (*tasks)->Defer([&] {
      ran.push_back(4);
      all.set_value();
    });
    (*tasks)->Wake();
    (*tasks)->Wake();  // Nothing to do.
    all.get_future().wait();
    (*tasks)->Defer([&] { ran.push_back(5); });
  }
  EXPECT_EQ(ran, (std::vector<int>{1, 2, 3, 4, 5})) << "the last before the thread ends";
}

}  // namespace
}  // namespace tessera::server
