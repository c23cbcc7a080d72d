/** The window's layout: its sidebar, permanent in a wide window, is a drawer in a narrow one. */
export class Layout {
  /** True if the window is too narrow for a permanent sidebar. */
  narrow = $state(false);
  #sidebarOpen = $state(true);
  #drawerOpen = $state(false);

  readonly sidebarShown = $derived.by(() => (this.narrow ? this.#drawerOpen : this.#sidebarOpen));
  /** True while the sidebar covers the chat. */
  readonly drawerShown = $derived.by(() => this.narrow && this.#drawerOpen);

  showSidebar(): void {
    this.#show(true);
  }

  toggleSidebar(): void {
    this.#show(!this.sidebarShown);
  }

  closeDrawer(): void {
    this.#drawerOpen = false;
  }

  #show(shown: boolean): void {
    if (this.narrow) this.#drawerOpen = shown;
    else this.#sidebarOpen = shown;
  }
}
