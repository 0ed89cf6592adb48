// SPDX-License-Identifier: Apache-2.0
//
// Answers held against their form: off the thread that makes answers, in order, and what does not
// fit ends the whole generation.
#include "server/form_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "server/forwarding_listener.h"
#include "support/fake_service.h"

namespace tessera::server {
namespace {

using engine::FinishReason::kLength;
using engine::FinishReason::kStop;
using testing::FakeService;

/// What a listener heard, in order.
struct Recorder : GenerationListener {
  explicit Recorder(std::vector<std::string>* heard) : heard_(heard) {}
  void OnStart(FailGeneration /*fail*/) override { heard_->push_back("start"); }
  void OnPrefill(size_t, const engine::PrefillProgress&) override { heard_->push_back("prefill"); }
  void OnEmbedding(size_t, std::vector<float>) override { heard_->push_back("embedding"); }
  void OnDelta(size_t choice, engine::OutputDelta) override { Hear("delta", choice); }
  void OnChoiceEnd(size_t choice, engine::FinishReason) override { Hear("end", choice); }
  void OnDone(const GenerationTotals&) override { heard_->push_back("done"); }
  void OnError(const Status& status) override {
    heard_->push_back("error: " + std::string(CodeName(status.code())));
  }

 private:
  void Hear(const char* what, size_t choice) {
    heard_->push_back(what + (" " + std::to_string(choice)));
  }
  std::vector<std::string>* heard_;
};

using Heard = std::vector<std::string>;

class FormCheckTest : public ::testing::Test {
 protected:
  std::unique_ptr<GenerationListener> Make(size_t count, const FormSetting& setting) {
    std::vector<ChoiceSpec> choices(count);
    for (ChoiceSpec& choice : choices)
      choice.grammar = model_.grammars->Get(text::GrammarKind::kRegex, "ab").value();
    return MakeFormCheck(std::make_unique<Recorder>(&heard_), choices, setting);
  }
  FormSetting Setting() {
    return {.counters = &counters_,
            .worker = worker_.get(),
            .tasks = tasks_.get(),
            .clock = &Clock::Real()};
  }
  void OnTaskThread(const std::function<void()>& act) {
    std::promise<void> acted;
    tasks_->Post([&] {
      act();
      acted.set_value();
    });
    acted.get_future().wait();
  }
  /// Until all posted looks have been taken and their verdicts heard.
  void Settle() {
    worker_->Stop();
    OnTaskThread([] {});
  }

  const ServedModel model_ = testing::FakeServedModel();
  Heard heard_;  // Task thread.
  FormCounters counters_;
  std::unique_ptr<TaskThread> tasks_ = TaskThread::Start().value();
  std::unique_ptr<FormWorker> worker_ = FormWorker::Start().value();
};

TEST_F(FormCheckTest, EndsComeAfterTheirVerdictAndDoneAfterAllEnds) {
  const auto check = Make(2, Setting());
  OnTaskThread([&] {
    check->OnDelta(0, {.text = "a", .tokens = {}});
    check->OnDelta(1, {.text = "a", .tokens = {}});
    check->OnDelta(0, {.text = "b", .tokens = {}});
    check->OnChoiceEnd(0, kStop);
    check->OnChoiceEnd(1, kLength);
    check->OnDone({});
  });
  Settle();
  EXPECT_EQ(heard_, (Heard{"delta 0", "delta 1", "delta 0", "end 1", "end 0", "done"}));
  EXPECT_EQ(counters_.Snapshot().valid, 1);
  EXPECT_EQ(counters_.Snapshot().cut, 1);
}

TEST_F(FormCheckTest, ALongLookHoldsUpNothingElse) {
  std::promise<void> go_on;
  std::atomic<bool> is_looking = false;
  FormSetting setting = Setting();
  setting.validate = [&, wait = go_on.get_future().share()](const text::Grammar&,
                                                            std::string_view) {
    is_looking = true;
    wait.wait();
    return Status();
  };
  auto check = Make(2, setting);
  OnTaskThread([&] { check->OnChoiceEnd(0, kStop); });
  while (!is_looking) std::this_thread::yield();
  // The task thread is free, and so is the other choice.
  OnTaskThread([&] {
    check->OnDelta(1, {.text = "ab", .tokens = {}});
    check->OnChoiceEnd(1, kLength);
    check->OnDone({});
    EXPECT_EQ(heard_, (Heard{"delta 1", "end 1"}));
    check.reset();  // As the generation does once it is done.
  });
  go_on.set_value();
  Settle();
  EXPECT_EQ(heard_, (Heard{"delta 1", "end 1", "end 0", "done"}));
}

TEST_F(FormCheckTest, WhatTakesTooLongIsCountedAndPasses) {
  FormSetting setting = Setting();
  setting.validate = [](const text::Grammar&, std::string_view) {
    return ResourceExhausted("too long");
  };
  const auto check = Make(1, setting);
  OnTaskThread([&] { check->OnChoiceEnd(0, kStop); });
  Settle();
  // Nobody looks any more.
  OnTaskThread([&] { check->OnDone({}); });
  EXPECT_EQ(heard_, (Heard{"end 0", "done"}));
  const auto late = Make(1, Setting());
  OnTaskThread([&] { late->OnChoiceEnd(0, kStop); });
  EXPECT_EQ(heard_, (Heard{"end 0", "done", "end 0"}));
  EXPECT_EQ(counters_.Snapshot().skipped, 2);
}

TEST_F(FormCheckTest, AnAnswerThatDoesNotFitFailsTheWholeGeneration) {
  const auto check = Make(2, Setting());
  int failed = 0;
  OnTaskThread([&] {
    check->OnStart([&](const Status& why) {
      ++failed;
      check->OnError(why);
      return true;
    });
    check->OnDelta(0, {.text = "ax", .tokens = {}});
    check->OnChoiceEnd(0, kStop);
  });
  Settle();
  OnTaskThread([&] {
    check->OnDelta(1, {.text = "ab", .tokens = {}});
    check->OnDone({});
  });
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(heard_, (Heard{"start", "delta 0", "error: INTERNAL"}));
  EXPECT_EQ(counters_.Snapshot().invalid, 1);
}

TEST_F(FormCheckTest, AGenerationThatIsDoneFailsToo) {
  const auto check = Make(1, Setting());
  OnTaskThread([&] {
    check->OnStart([](const Status&) { return false; });
    check->OnChoiceEnd(0, kStop);
    check->OnDone({});
  });
  Settle();
  EXPECT_EQ(heard_, (Heard{"start", "error: INTERNAL"}));
}

TEST_F(FormCheckTest, EventsThatDoNotConcernItPass) {
  const auto check = Make(1, Setting());
  OnTaskThread([&] {
    check->OnPrefill(0, {});
    check->OnEmbedding(0, {});
  });
  EXPECT_EQ(heard_, (Heard{"prefill", "embedding"}));
}

TEST_F(FormCheckTest, ThoughtsBeforeTheTextAreNotLookedAt) {
  std::vector<ChoiceSpec> choices(1);
  choices[0].grammar = model_.grammars->Get(text::GrammarKind::kRegex, "ab").value();
  choices[0].thoughts.emplace(*text::FindReasoningSyntax("think"),
                              text::ReasoningParser::Options{.is_open = true});
  const auto check = MakeFormCheck(std::make_unique<Recorder>(&heard_), choices, Setting());
  OnTaskThread([&] {
    check->OnDelta(0, {.text = "no ab</thi", .tokens = {}});
    check->OnDelta(0, {.text = "nk>\nab", .tokens = {}});
    check->OnChoiceEnd(0, kStop);
  });
  Settle();
  EXPECT_EQ(heard_, (Heard{"delta 0", "delta 0", "end 0"}));
  EXPECT_EQ(counters_.Snapshot().valid, 1);
}

TEST(FormCheck, ProgressIsToldWhereAFormIsAskedFor) {
  FakeService service(testing::FakeSessionOptions{});
  size_t told = 0;
  for (const std::string& event : service.Stream(
           "/v1/completions",
           R"({"model":"org/fake","prompt":"p","max_tokens":9,"guided_regex":"a+","stream":true,
               "stream_options":{"include_progress":true}})"))
    told += event.find("prompt_progress") != std::string::npos ? 1 : 0;
  EXPECT_GE(told, 1u);
}

/// Fails its generation at the first delta of choice 0.
class Failing : public ForwardingListener {
 public:
  Failing(std::shared_ptr<GenerationListener> next, std::promise<void>* failed)
      : ForwardingListener(std::move(next)), failed_(failed) {}
  void OnStart(FailGeneration fail) override { fail_ = std::move(fail); }
  void OnDelta(size_t choice, engine::OutputDelta delta) override {
    ForwardingListener::OnDelta(choice, std::move(delta));
    if (choice != 0) return;
    EXPECT_TRUE(fail_(Internal("bad")));
    EXPECT_FALSE(fail_(Internal("again")));
  }
  void OnError(const Status& status) override {
    ForwardingListener::OnError(status);
    failed_->set_value();
  }

 private:
  FailGeneration fail_;
  std::promise<void>* failed_;
};

TEST(Generation, AListenerMayFailItAndAllChoicesEnd) {
  FakeService service(testing::FakeSessionOptions{});
  const ServedModel model = testing::FakeServedModel();
  RequestRegistry registry;
  const auto tasks = TaskThread::Start().value();
  std::vector<ChoiceSpec> choices(3);
  for (ChoiceSpec& choice : choices) {
    choice.request.prompt = {1, 2, 3};
    choice.request.stop.max_tokens = 100;
    choice.processor = std::make_unique<engine::OutputProcessor>(
        model.make_detokenizer(true), engine::OutputOptions{}, choice.request.prompt);
  }
  Heard heard;
  std::promise<void> failed;
  auto listener = std::make_unique<Failing>(std::make_shared<Recorder>(&heard), &failed);
  engine::Engine& engine = service.service->engine();
  {
    const auto started =
        Generation::Start({.engine = &engine, .tasks = tasks.get(), .registry = &registry}, {"a"},
                          std::move(choices), std::move(listener));
    ASSERT_TRUE(started.has_value()) << started.error().ToString();
  }
  failed.get_future().wait();
  // The others were cancelled: they end long before their 100 tokens.
  ASSERT_TRUE(engine.Drain(std::chrono::seconds(60)).ok());
  std::promise<void> looked;
  tasks->Post([&] { looked.set_value(); });
  looked.get_future().wait();
  EXPECT_EQ(heard.back(), "error: INTERNAL");
  EXPECT_EQ(std::ranges::count(heard, "delta 0"), 1);
  EXPECT_EQ(std::ranges::count_if(heard, [](const auto& what) { return what.starts_with("end"); }),
            0);
}

}  // namespace
}  // namespace tessera::server
