/* page.h: the files of src/api/page/, each ended by a zero (cmake/embed_page.cmake). */
#ifndef API_PAGE_H
#define API_PAGE_H

extern const unsigned char page_file_page_html[], page_file_page_css[], page_file_model_js[],
    page_file_layout_js[], page_file_draw_js[], page_file_page_js[];

#endif
