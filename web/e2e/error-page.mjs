// The page of a sign-in that is refused, which has the request ID to quote.

/** Takes a picture of it. */
export async function errorPage(browser, stack, path) {
  const page = await browser.newPage({ viewport: { width: 820, height: 420 } });
  await page.goto(`${stack.edgeUrl}/api/auth/callback?code=x&state=y`);
  await page.screenshot({ path });
  await page.close();
}
