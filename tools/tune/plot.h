// Diagrams of the tools (`ferryctl tune`, ferrysim), as SVG: one file, no script, no font of its
// own.
//
// Pure: any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ferry::tools {

struct PlotPoint {
  double x = 0;  // above 0
  double y = 0;
};

struct PlotLine {
  std::string name;
  std::string color;  // "#1f77b4"
  bool dashed = false;
  bool marks = false;  // a dot at each point: it was measured
  std::vector<PlotPoint> points;
  bool is_bare = false;  // no line between the points
};

// One diagram. The x axis doubles from line to line.
struct Panel {
  std::string title;
  std::string y_label;
  bool y_is_logarithmic = false;  // by powers of ten; then all y are above 0
  std::vector<PlotLine> lines;
  double marked_x = 0;  // a line from top to bottom, with `mark`; 0: none
  std::string mark;
  std::string x_label = "size";
  bool x_is_bytes = true;  // else a number
};

// Draws the panels one below the other, under `title` and `subtitle`.
std::string Svg(const std::string& title, const std::string& subtitle,
                const std::vector<Panel>& panels);

}  // namespace ferry::tools
