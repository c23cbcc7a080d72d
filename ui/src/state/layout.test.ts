import { expect, test } from "vitest";
import { Layout } from "./layout.svelte";

test("the sidebar of a wide window stays as it was while the window is narrow", () => {
  const layout = new Layout();
  layout.toggleSidebar();
  layout.narrow = true;
  layout.toggleSidebar();
  expect(layout.sidebarShown).toBe(true);
  layout.narrow = false;
  expect([layout.sidebarShown, layout.drawerShown]).toEqual([false, false]);
});

test("only a drawer covers the chat, and only a drawer is closed", () => {
  const layout = new Layout();
  layout.closeDrawer();
  expect([layout.sidebarShown, layout.drawerShown]).toEqual([true, false]);
  layout.narrow = true;
  expect(layout.sidebarShown).toBe(false);
  layout.showSidebar();
  expect([layout.sidebarShown, layout.drawerShown]).toEqual([true, true]);
  layout.closeDrawer();
  expect([layout.sidebarShown, layout.drawerShown]).toEqual([false, false]);
});
