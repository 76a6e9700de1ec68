#include "common/passed_descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace ferry {
namespace {

class PassedDescriptorsTest : public ::testing::Test {
 protected:
  PassedDescriptorsTest() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    here_.Reset(ends[0]);
    there_.Reset(ends[1]);
  }
  ssize_t Send(size_t size, const std::vector<int>& descriptors) {
    return SendWithDescriptors(here_.get(), std::span(bytes_).first(size), descriptors, 0);
  }

  UniqueFd here_;
  UniqueFd there_;
  std::array<std::byte, 16> bytes_{};
  std::array<std::byte, 8> got_{};
  std::vector<UniqueFd> descriptors_;
};

TEST_F(PassedDescriptorsTest, DescriptorsComeWithTheBytesAndCloseOnExec) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  bytes_[0] = std::byte{7};
  ASSERT_EQ(Send(3, {ends[0], ends[1]}), 3);
  ASSERT_EQ(Send(1, {}), 1);
  ASSERT_EQ(ReceiveWithDescriptors(there_.get(), got_, &descriptors_, 0), 3);
  EXPECT_EQ(got_[0], std::byte{7});
  ASSERT_EQ(descriptors_.size(), 2U);
  EXPECT_EQ(fcntl(descriptors_[1].get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  char byte = 'x';
  ASSERT_EQ(write(descriptors_[1].get(), &byte, 1), 1);
  ASSERT_EQ(read(ends[0], &byte, 1), 1);
  ASSERT_EQ(ReceiveWithDescriptors(there_.get(), got_, &descriptors_, 0), 1);
  EXPECT_EQ(descriptors_.size(), 2U) << "those of before stay";
  close(ends[0]);
  close(ends[1]);
}

TEST_F(PassedDescriptorsTest, MoreThanTheMostAreNotSent) {
  EXPECT_EQ(Send(1, std::vector<int>(kMaxPassedDescriptors + 1, 0)), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(PassedDescriptorsTest, WhatIsLostIsTold) {
  int flags = 0;
  ASSERT_EQ(Send(16, {}), 16);
  ASSERT_EQ(ReceiveWithDescriptors(there_.get(), got_, &descriptors_, 0, &flags), 8);
  EXPECT_NE(flags & MSG_TRUNC, 0);
  ASSERT_EQ(Send(1, {}), 1);
  ASSERT_EQ(ReceiveWithDescriptors(there_.get(), got_, &descriptors_, 0, &flags), 1);
  EXPECT_EQ(flags & (MSG_TRUNC | MSG_CTRUNC), 0);
}

TEST_F(PassedDescriptorsTest, LastWordsOfOneWhoReadsNoMoreArrive) {
  ASSERT_EQ(Send(1, {}), 1);
  ASSERT_EQ(SendWithDescriptors(there_.get(), std::span(bytes_).first(3), {}, 0), 3);
  there_.Reset();
  EXPECT_EQ(ReceiveWithDescriptors(here_.get(), got_, &descriptors_, 0), 3);
  EXPECT_EQ(ReceiveWithDescriptors(here_.get(), got_, &descriptors_, 0), 0);
}

TEST_F(PassedDescriptorsTest, APeerThatIsGoneIsAnErrorAndNoSignal) {
  there_.Reset();
  EXPECT_EQ(Send(1, {}), -1);
  EXPECT_EQ(errno, EPIPE);
}

}  // namespace
}  // namespace ferry
