/* page.h: the files of src/inspect/page/, each ended by a zero (cmake/embed_page.cmake). */
#ifndef INSPECT_PAGE_H
#define INSPECT_PAGE_H

extern const unsigned char page_file_page_html[], page_file_page_css[], page_file_model_js[],
    page_file_layout_js[], page_file_draw_js[], page_file_page_js[];

#endif
