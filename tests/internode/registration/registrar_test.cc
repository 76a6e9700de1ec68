// In which order memory is pinned and unpinned.
#include "internode/registration/registrar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/internode/registration/test_registrar.h"

namespace ferry::daemon {
namespace {

using testing::ElementsAre;

class RegistrarTest : public testing::Test {
 protected:
  RegistrarTest() {
    Pin("first", 0, [this] {
      begun_.set_value();
      go_on_.get_future().wait();
    });
    begun_.get_future().wait();
  }
  ~RegistrarTest() override { registrar_.Collect(); }

  // The registrar's thread is busy with "first" until then.
  void GoOn() {
    go_on_.set_value();
    registrar_.Collect();
    registrar_.Finish();  // and what is unpinned
  }
  void Pin(const std::string& name, uint64_t owner, std::function<void()> meanwhile = nullptr) {
    progress::PinRequest request;
    request.owner = owner;
    request.prepare = [this, name, meanwhile = std::move(meanwhile)] {
      if (meanwhile) {
        meanwhile();
      }
      Note(name);
    };
    pinned_.push_back(std::make_unique<progress::PinnedMemory>(*registrar_, std::move(request)));
  }
  // Memory that says when the registrar has let go of it.
  std::shared_ptr<const void> Memory(const std::string& name) {
    return {this, [name](RegistrarTest* test) { test->Note(name); }};
  }
  void Note(const std::string& name) {
    const std::lock_guard lock(mutex_);
    done_.push_back(name);
  }

  std::promise<void> begun_;
  std::promise<void> go_on_;
  std::mutex mutex_;
  std::vector<std::string> done_;
  TestRegistrar registrar_;
  std::vector<std::unique_ptr<progress::PinnedMemory>> pinned_;
};

TEST_F(RegistrarTest, WhoPinsMuchDoesNotKeepOthersWaiting) {
  for (const char* name : {"a1", "a2", "a3"}) {
    Pin(name, 1);
  }
  Pin("b1", 2);
  Pin("c1", 3);
  Pin("b2", 2);
  GoOn();
  EXPECT_THAT(done_, ElementsAre("first", "a1", "b1", "c1", "a2", "b2", "a3"));
}

TEST_F(RegistrarTest, WhatIsUnpinnedMakesRoomFirst) {
  Pin("a1", 1);
  registrar_->Unpin(std::make_unique<transport::Registration>(), Memory("unpinned"), nullptr);
  GoOn();
  EXPECT_THAT(done_, ElementsAre("first", "unpinned", "a1"));
}

TEST_F(RegistrarTest, WithoutARegistrationAllBeforeIsDoneFirst) {
  Pin("a1", 1);
  Pin("a2", 1);
  registrar_->Unpin(nullptr, Memory("let go"), nullptr);
  Pin("b1", 2);
  GoOn();
  EXPECT_THAT(done_, ElementsAre("first", "a1", "b1", "a2", "let go"));
}

}  // namespace
}  // namespace ferry::daemon
