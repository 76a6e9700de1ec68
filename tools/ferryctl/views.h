// Views: the output of ferryctl, as JSON and as text for people. Views are pure functions; any
// thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "proto/control.pb.h"
#include "tools/display/table.h"
#include "tools/display/view.h"
#include "tools/doctor/checks.h"
#include "tools/ferryctl/choice.h"

namespace ferry::tools {

// One line for each daemon: what it serves, or why it does not answer.
View ListView(const std::vector<MetDaemon>& daemons, const Terminal& terminal = {});

// How the ranks of a job are shown.
enum class Ranks {
  kOne,   // all that the daemon knows of it
  kEach,  // a line each
  kMany,  // a line each, or for groups of them if they are many
};

// `label`: what people call the job.
View WhyView(const std::string& job_id, const std::string& label, Ranks ranks,
             const control::WhyReply& reply, const Terminal& terminal = {});
// The ranks of all jobs that wait, the longest wait first.
View WaitingView(const control::WhyReply& reply, Ranks ranks, const Terminal& terminal = {});

// One line for each finding, and below it the advice.
View DoctorView(const std::vector<Finding>& findings, const Terminal& terminal = {});

// ---- Printing: main thread ----

// The width and colours of standard output, as they are now.
Terminal StandardOutput();

// Prints at once, so that a reader can follow.
void Print(const std::string& text);
// Prints a JSON value; on one line if `indent` is negative. Replaces invalid UTF-8, since names may
// hold any bytes.
void PrintJson(const nlohmann::ordered_json& value, int indent = 2);

}  // namespace ferry::tools
