// html_page: a page as one HTML file that fetches nothing: style, scripts, data and all figures stand in it.
//
// Tables are written as HTML, so that everything is there without a script; the script draws the charts above them.
// A content security policy allows the page's own scripts and nothing else, whatever the data hold.
// Thread-safety: pure. Ownership: values.
#pragma once

#include "page/render/assets.hpp"
#include "page/render/page.hpp"

#include <string>

namespace kiln::host::page {

std::string html_page(const Page& page, const Assets& assets);

}  // namespace kiln::host::page
