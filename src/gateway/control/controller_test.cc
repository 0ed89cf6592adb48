// SPDX-License-Identifier: Apache-2.0
//
// The controller with a launcher and a prober of the test: no processes, no network, real threads.
#include "gateway/control/controller.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>

#include "support/fixtures.h"

namespace tessera::gateway {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::TempDir;

/// Workers that exist only here.
class FakeLauncher final : public Launcher {
 public:
  Result<WorkerRecord> Prepare(const WorkerOrder& order) override {
    const std::lock_guard lock(mutex);
    ++starts;
    prepared = order;
    return WorkerRecord{.id = order.worker_id,
                        .endpoint_id = order.endpoint_id,
                        .generation = order.generation,
                        .pid = 1000 + starts,
                        .start_ticks = 1,
                        .port = tells_later ? 0 : 9,
                        .key = order.key,
                        .started_at = 1};
  }
  Status Run(std::string_view id) override {
    const std::lock_guard lock(mutex);
    if (refuses) return NotFound("no such program");
    alive[std::string(id)] = prepared;
    return {};
  }
  bool Adopt(const WorkerRecord& record) override {
    const std::lock_guard lock(mutex);
    return alive.contains(record.id);
  }
  void Drain(std::string_view id) override { End(std::string(id), "it ended"); }
  void Kill(std::string_view id) override { End(std::string(id), "killed"); }
  std::vector<WorkerExit> TakeExits() override {
    const std::lock_guard lock(mutex);
    return std::exchange(exits, {});
  }
  std::vector<WorkerNews> TakeNews() override {
    const std::lock_guard lock(mutex);
    return std::exchange(news, {});
  }
  Result<std::string> ReadLog(std::string_view, uint64_t) const override { return std::string(); }

  void End(const std::string& id, const std::string& reason) {
    const std::lock_guard lock(mutex);
    if (alive.erase(id) > 0) exits.push_back({id, reason});
  }
  std::vector<std::string> Alive() const {
    const std::lock_guard lock(mutex);
    std::vector<std::string> ids;
    for (const auto& [id, order] : alive) ids.push_back(id);
    return ids;
  }

  mutable std::mutex mutex;
  WorkerOrder prepared;
  std::map<std::string, WorkerOrder> alive;
  std::vector<WorkerExit> exits;
  std::vector<WorkerNews> news;
  std::atomic<bool> refuses{false}, tells_later{false};
  std::atomic<int> starts{0};
};

/// Ready as soon as they are watched, unless the test holds them back.
class FakeProber final : public Prober {
 public:
  explicit FakeProber(std::shared_ptr<std::atomic<bool>> is_held) : is_held_(std::move(is_held)) {}
  void Watch(const WorkerRecord& worker, std::function<void()> on_ready) override {
    if (!*is_held_) return on_ready();
    const std::lock_guard lock(mutex_);
    watched_[worker.id] = std::move(on_ready);
  }
  void Forget(std::string_view id) override {
    const std::lock_guard lock(mutex_);
    watched_.erase(std::string(id));
  }

 private:
  const std::shared_ptr<std::atomic<bool>> is_held_;
  std::mutex mutex_;
  std::map<std::string, std::function<void()>> watched_;
};

class ControllerTest : public ::testing::Test {
 protected:
  void Open() {
    store = *Store::Open(dir.path() / "state");
    controller = *Controller::Start({.idle = seconds(3600), .template_dir = dir.path() / "t"},
                                    store.get(), &launcher, &models,
                                    std::make_unique<FakeProber>(is_held), Clock::Real());
  }
  void Close() {
    controller.reset();
    store.reset();
  }
  void TearDown() override { Close(); }

  static AskedSpec Spec(const std::string& name, int64_t min = 1, int64_t max = 2) {
    auto asked = ReadCreate({{"name", name},
                             {"model_name", "org/m"},
                             {"min_workers", min},
                             {"max_workers", max},
                             {"per_worker", 4}});
    EXPECT_TRUE(asked.has_value());
    return *asked;
  }
  template <class Check>
  bool Eventually(Check check) {
    for (int i = 0; i < 3000; ++i) {
      if (check()) return true;
      std::this_thread::sleep_for(milliseconds(5));
    }
    return false;
  }
  EndpointView View(const std::string& name) {
    const auto view = controller->Find(name, "me");
    return view.value_or(EndpointView{});
  }
  bool BecomesReady(const std::string& name) {
    return Eventually([&] { return View(name).status == EndpointStatus::kReady; });
  }

  TempDir dir;
  FakeLauncher launcher;
  ModelTable models = *ModelTable::Read({});
  std::shared_ptr<std::atomic<bool>> is_held = std::make_shared<std::atomic<bool>>(false);
  std::unique_ptr<Store> store;
  std::unique_ptr<Controller> controller;
};

TEST_F(ControllerTest, FromCreationToACall) {
  Open();
  ASSERT_TRUE(controller->Create(Spec("a"), "me").has_value());
  ASSERT_TRUE(BecomesReady("a"));
  std::string worker;
  controller->FindRoute("a", "me").route->Acquire({}, [&](Result<Route::Lease> lease) {
    ASSERT_TRUE(lease.has_value());
    worker = lease->worker().id;
    EXPECT_EQ(lease->worker().key, launcher.alive.at(worker).key);
  });
  EXPECT_EQ(launcher.Alive(), std::vector{worker});
  EXPECT_NE(std::ranges::find(launcher.alive.at(worker).arguments, "--model-path=org/m"),
            launcher.alive.at(worker).arguments.end());
}

TEST_F(ControllerTest, NotReadyBeforeAWorkerAnswered) {
  *is_held = true;
  Open();
  ASSERT_TRUE(controller->Create(Spec("a"), "me").has_value());
  ASSERT_TRUE(Eventually([&] { return launcher.Alive().size() == 1; }));
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_NE(View("a").status, EndpointStatus::kReady);
  EXPECT_FALSE(View("a").is_ready);
}

TEST_F(ControllerTest, AWorkerWhosePlaceIsToldLaterServesThere) {
  launcher.tells_later = true;
  Open();
  ASSERT_TRUE(controller->Create(Spec("a"), "me").has_value());
  ASSERT_TRUE(Eventually([&] { return launcher.Alive().size() == 1; }));
  const std::string id = launcher.Alive()[0];
  const auto tell = [&](WorkerNews news) {
    const std::lock_guard lock(launcher.mutex);
    launcher.news.push_back(std::move(news));
  };
  tell({.worker_id = "wrk_none", .text = "of nobody here"});
  tell({.worker_id = id, .text = "no machine is free"});
  ASSERT_TRUE(Eventually([&] {
    const auto events = store->Events(View("a").record.id, 0, 100);
    return events->back().text == "worker " + id + " waits: no machine is free";
  }));
  EXPECT_FALSE(View("a").is_ready) << "nobody was asked";
  tell({.worker_id = id, .host = "10.1.2.3", .port = 8000, .pod = "pod-1"});
  ASSERT_TRUE(BecomesReady("a"));
  EXPECT_EQ(View("a").workers.at(0).record.pod, "pod-1");
  controller->FindRoute("a", "me").route->Acquire({}, [&](Result<Route::Lease> lease) {
    ASSERT_TRUE(lease.has_value());
    EXPECT_EQ(lease->worker().host, "10.1.2.3");
    EXPECT_EQ(lease->worker().port, 8000);
  });
}

TEST_F(ControllerTest, ACrashedWorkerIsReplaced) {
  Open();
  ASSERT_TRUE(controller->Create(Spec("a"), "me").has_value());
  ASSERT_TRUE(BecomesReady("a"));
  const std::string first = launcher.Alive()[0];
  launcher.End(first, "ended by signal 9");
  ASSERT_TRUE(Eventually([&] {
    const auto alive = launcher.Alive();
    return alive.size() == 1 && alive[0] != first && View("a").status == EndpointStatus::kReady;
  }));
  EXPECT_EQ(store->LoadWorkers()->size(), 1u);
}

TEST_F(ControllerTest, WhatCannotStartFailsWithItsReason) {
  launcher.refuses = true;
  Open();
  ASSERT_TRUE(controller->Create(Spec("a"), "me").has_value());
  ASSERT_TRUE(Eventually([&] { return View("a").status == EndpointStatus::kUpdateFailed; }));
  EXPECT_NE(View("a").reason.find("no such program"), std::string::npos);
  EXPECT_LE(launcher.starts, 6) << "not in a tight loop";
  launcher.refuses = false;
  EXPECT_TRUE(BecomesReady("a")) << "it is still tried";
}

TEST_F(ControllerTest, OneNameHasOneCreatorAmongMany) {
  Open();
  std::atomic<int> made{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] { made += controller->Create(Spec("a"), "me").has_value() ? 1 : 0; });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
}

TEST_F(ControllerTest, OthersSeePublicOnesAndChangeNone) {
  Open();
  ASSERT_TRUE(controller->Create(Spec("public"), "me").has_value());
  AskedSpec hidden = Spec("hidden");
  hidden.spec.public_inference = false;
  ASSERT_TRUE(controller->Create(hidden, "me").has_value());
  EXPECT_EQ(controller->List("you").size(), 1u);
  EXPECT_FALSE(controller->Find("hidden", "you").has_value());
  EXPECT_EQ(controller->FindRoute("hidden", "you").route, nullptr);
  EXPECT_NE(controller->FindRoute("public", "you").route, nullptr);
  EXPECT_EQ(controller->Update("public", {}, "you").error().status, 404);
  EXPECT_EQ(controller->Delete("public", "you").error().status, 404);
}

TEST_F(ControllerTest, AnUpdateOfCountsKeepsItsWorkers) {
  Open();
  ASSERT_TRUE(controller->Create(Spec("a"), "me").has_value());
  ASSERT_TRUE(BecomesReady("a"));
  const auto before = launcher.Alive();
  ASSERT_TRUE(controller->Update("a", {{"min_workers", 2}}, "me").has_value());
  ASSERT_TRUE(Eventually([&] { return launcher.Alive().size() == 2; }));
  EXPECT_EQ(std::ranges::count(launcher.Alive(), before[0]), 1);
  ASSERT_TRUE(controller->Update("a", {{"max_model_len", 64}}, "me").has_value());
  ASSERT_TRUE(Eventually([&] {
    return std::ranges::count(launcher.Alive(), before[0]) == 0 &&
           View("a").status == EndpointStatus::kReady && launcher.Alive().size() == 2;
  }));
}

TEST_F(ControllerTest, ADeletedOneVanishesAndItsNameIsFree) {
  Open();
  ASSERT_TRUE(controller->Create(Spec("a"), "me").has_value());
  ASSERT_TRUE(BecomesReady("a"));
  ASSERT_TRUE(controller->Delete("a", "me").has_value());
  EXPECT_EQ(controller->FindRoute("a", "me").route, nullptr);
  ASSERT_TRUE(Eventually([&] { return !controller->Find("a", "me").has_value(); }));
  EXPECT_TRUE(launcher.Alive().empty());
  EXPECT_TRUE(store->LoadWorkers()->empty());
  EXPECT_EQ(controller->Delete("a", "me").error().status, 404);
  EXPECT_TRUE(controller->Create(Spec("a"), "me").has_value());
}

TEST_F(ControllerTest, ARestartAdoptsWhatLives) {
  Open();
  ASSERT_TRUE(controller->Create(Spec("a", 2, 2), "me").has_value());
  ASSERT_TRUE(Eventually([&] { return launcher.Alive().size() == 2; }));
  ASSERT_TRUE(BecomesReady("a"));
  const auto before = launcher.Alive();
  const std::string id = View("a").record.id;
  Close();
  {
    const std::lock_guard lock(launcher.mutex);
    launcher.alive.erase(before[0]);  // Died unseen.
  }
  Open();
  ASSERT_TRUE(BecomesReady("a"));
  EXPECT_EQ(View("a").record.id, id);
  ASSERT_TRUE(Eventually([&] { return launcher.Alive().size() == 2; }));
  EXPECT_EQ(std::ranges::count(launcher.Alive(), before[1]), 1);
  EXPECT_TRUE(Eventually([&] { return store->LoadWorkers()->size() == 2; }));
}

TEST_F(ControllerTest, UnknownModelsAreRefusedWithTheNearest) {
  Open();
  AskedSpec asked = Spec("a");
  asked.spec.model_name = "lama-7b";
  const auto made = controller->Create(asked, "me");
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().status, 400);
  EXPECT_NE(made.error().text.find("llama-7b"), std::string::npos);
}

TEST_F(ControllerTest, StoppedWorkersAreNotStartedAgain) {
  Open();
  ASSERT_TRUE(controller->Create(Spec("a"), "me").has_value());
  ASSERT_TRUE(BecomesReady("a"));
  controller->StopWorkers(seconds(20));
  EXPECT_TRUE(launcher.Alive().empty());
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_TRUE(launcher.Alive().empty());
}

}  // namespace
}  // namespace tessera::gateway
